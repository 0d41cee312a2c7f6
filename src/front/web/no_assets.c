/* The list of the page's files in a build without npm: empty. */
#include "front/web/assets.h"

const struct web_asset web_assets[] = { { .path = NULL } };
