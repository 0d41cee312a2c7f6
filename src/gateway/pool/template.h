/*
 * pool_template: the pod of a worker, built in or from kubernetes.template_file, and its hash.
 *
 * The built-in pod has two forms.  kubernetes.run_as_user = 0 is root of a user namespace, with the capabilities that
 * sandboxes with ids of their own need; Pod Security "baseline" accepts the pod.  Any other user has no capability; Pod
 * Security "restricted" accepts the pod.
 */
#ifndef GATEWAY_POOL_TEMPLATE_H
#define GATEWAY_POOL_TEMPLATE_H

#include "model/settings.h"

#define POOL_HASH_LEN 64                   /* hexadecimal digits of SHA-256 */

/*
 * Make the pod of the settings, without a name and with its hash in the annotation KUBE_TEMPLATE.  *ret is the
 * caller's.
 * Errors: CSN_E_CONFIG, which names the setting.
 */
int pool_template_new(const struct settings *settings, json_t **ret, struct csn_error *err);
/* The hash of a pod of pool_template_new(). */
const char *pool_template_hash(const json_t *template);
/* A pod of the template with this name.  The caller owns the reference. */
json_t *pool_template_pod(const json_t *template, const char *name);

#endif
