/*
 * The programs of build sandboxes.  Both call pip of Debian as the module that it is, so that a forked interpreter of
 * the pool can be used.  pip's settings come from the command line alone.
 */
#include "packages/packages_private.h"

#define COMMON                                                                                                         \
        "'--isolated', '--quiet', '--no-input', '--no-color', '--no-cache-dir', '--disable-pip-version-check', "       \
        "'--progress-bar', 'off'"

/* The exit status 0 of pip comes as an exception, too. */
#define RUN_PIP                                                                                                        \
        "try:\n"                                                                                                       \
        "    runpy.run_module('pip', run_name='__main__', alter_sys=True)\n"                                           \
        "except SystemExit as end:\n"                                                                                  \
        "    if end.code:\n"                                                                                           \
        "        raise\n"

const char packages_resolve[] =
        "import json, platform, runpy, sys\n"
        "sys.argv = ['pip', 'install', " COMMON
        ", '--dry-run', '--ignore-installed', '--only-binary', ':all:', '--retries', '1',\n"
        "            '--timeout', '60', '--index-url', '" PACKAGE_INDEX_BASE
        "/simple', '--report', '/tmp/report.json', '-r', 'requirements.txt']\n" RUN_PIP
        "with open('/tmp/report.json', encoding='utf-8') as file:\n"
        "    report = json.load(file)\n"
        "lock = []\n"
        "for item in report['install']:\n"
        "    archive = item['download_info'].get('archive_info', {})\n"
        "    lock.append({'name': item['metadata']['name'], 'version': item['metadata']['version'], 'url': item['download_info']['url'],\n"
        "                 'sha256': archive.get('hash', '').partition('sha256=')[2] or archive.get('hashes', {}).get('sha256', '')})\n"
        "print(json.dumps({'runtime': platform.python_version(), 'arch': platform.machine(), 'libc': ' '.join(platform.libc_ver()), 'lock': lock}))\n";

/* The tree is immutable, so byte code needs no check of its source: unchecked-hash (PEP 552). */
const char packages_install[] =
        "import compileall, py_compile, runpy, sys\n"
        "sys.argv = ['pip', 'install', " COMMON
        ", '--no-index', '--no-deps', '--no-compile', '--require-hashes', '--only-binary', ':all:',\n"
        "            '--no-warn-script-location', '--find-links', 'wheels', '--target', 'tree', '-r', 'lock.txt']\n" RUN_PIP
        "compileall.compile_dir('tree', quiet=2, stripdir='tree', prependdir='/opt/packages', workers=1,\n"
        "                       invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)\n";
