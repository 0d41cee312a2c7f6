/*
 * package_spec: the packages that a request names, in a form that can be compared and that no resolver reads as an
 * option.
 *
 * A name is canonical (PEP 503: lower case, runs of "-", "_" and "." are "-").  The parser takes names, extras, version
 * specifiers and markers of PEP 508; it refuses addresses, paths, options and control characters.  For JavaScript a
 * name is that of a registry, and a version is a range of semver.
 */
#ifndef MODEL_PACKAGE_SPEC_H
#define MODEL_PACKAGE_SPEC_H

#include "base/base.h"

#define SPEC_NAME_MAX 128  /* bytes of a name; npm allows 214, PyPI has no limit */
#define SPEC_MAX 512       /* bytes of one specification */
#define SPEC_HASHES_MAX 64 /* hashes of one specification */

struct package_spec {
        char *name;    /* canonical */
        char *extras;  /* "a,b", sorted; or "" */
        char *version; /* ">=2.1,<3", without blanks; or "" */
        char *marker;  /* of PEP 508, as it was written; or "" */
        char **hashes; /* of "--hash=sha256:…": 64 hexadecimal digits each */
        size_t hashes_n;
};

struct package_set {
        struct arena *arena;  /* set by the caller: memory of the rest */
        const char *language; /* set by the caller: "python", or "javascript" for both languages of Node */
        struct package_spec *specs;
        size_t n;
        const char *lock; /* the entries of a package-lock.json, whose packages `specs` names; or NULL */
};

/*
 * The language of an entry of the field packages that names one, as in python:six and node:left-pad@1: "python" or
 * "javascript", and *text then begins behind the colon.  NULL: the entry names none, and *text is unchanged.
 */
const char *package_entry_language(const char **text);

/*
 * Add the packages of a text, separated by ",", ";" or line ends: "numpy, pandas;requests==2.28.0".  A name that is
 * there already is kept as it is; so explicit packages are added before detected ones.  `field` is the member of the
 * request, for errors.  Errors: CSN_E_INPUT.
 */
int package_set_add(struct package_set *set, const char *text, const char *field, struct csn_error *err);
/*
 * Add the lines of a requirements file: comments, continued lines and --hash options are read, other options, addresses
 * and paths are refused.  Errors: CSN_E_INPUT with the line.
 */
int package_set_add_requirements(struct package_set *set, const char *text, const char *field, struct csn_error *err);
/*
 * Add the dependencies of a block of inline metadata (PEP 723) in a program; none is no error.  Errors: CSN_E_INPUT
 * with the line.
 */
int package_set_add_script(struct package_set *set, const char *code, size_t len, struct csn_error *err);

/* Whether a set has a lock, or every package has one version and hashes: such a set means the same at any time. */
bool package_set_is_pinned(const struct package_set *set);
/* The set as a requirements file, sorted, one package a line; in the arena of the set. */
char *package_set_text(const struct package_set *set);

#endif
