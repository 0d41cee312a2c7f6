/*
 * The programs of build sandboxes.  pip is run as a module, so that a forked interpreter of the pool can be used; npm
 * is a child process.  The settings of both come from the command line alone.
 */
#include "packages/packages_private.h"

#define COMMON                                                                                                         \
        "'--isolated', '--quiet', '--no-input', '--no-color', '--no-cache-dir', '--disable-pip-version-check', "       \
        "'--progress-bar', 'off'"

/* In sandboxes PIP_PYTHON names an interpreter that answers installations (src/lang/installs). */
#define OWN_PIP "os.environ.pop('PIP_PYTHON', None)\n"

/* pip raises SystemExit for exit status 0, too. */
#define RUN_PIP                                                                                                        \
        "try:\n"                                                                                                       \
        "    runpy.run_module('pip', run_name='__main__', alter_sys=True)\n"                                           \
        "except SystemExit as end:\n"                                                                                  \
        "    if end.code:\n"                                                                                           \
        "        raise\n"

const char packages_pip_resolve[] =
        "import json, os, platform, runpy, sys\n" OWN_PIP
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
const char packages_pip_install[] =
        "import compileall, os, py_compile, runpy, sys\n" OWN_PIP
        "sys.argv = ['pip', 'install', " COMMON
        ", '--no-index', '--no-deps', '--no-compile', '--require-hashes', '--only-binary', ':all:',\n"
        "            '--no-warn-script-location', '--find-links', 'files', '--target', 'tree', '-r', 'lock.txt']\n" RUN_PIP
        "compileall.compile_dir('tree', quiet=2, stripdir='tree', prependdir='/opt/packages', workers=1,\n"
        "                       invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)\n";

/* ---- npm ---- */

/*
 * No settings file is read, and no script of a package runs.  npm's errors become one line: the first two lines other
 * than empty lines and codes, because later lines are general advice.
 */
#define RUN_NPM                                                                                                        \
        "const { spawnSync } = require('node:child_process');\n"                                                       \
        "const fs = require('node:fs'), os = require('node:os');\n"                                                    \
        "function npm(...words) {\n"                                                                                   \
        "    const done = spawnSync('/usr/bin/npm', [...words, '--ignore-scripts', '--no-audit', '--no-fund',\n"       \
        "        '--no-update-notifier', '--no-progress', '--no-color', '--loglevel=error', '--logs-max=0',\n"         \
        "        '--omit=dev', '--install-links=false', '--userconfig=/nonexistent/user',\n"                           \
        "        '--globalconfig=/nonexistent/global', '--cache=/tmp/npm', '--fetch-retries=0',\n"                     \
        "        '--fetch-timeout=60000', '--maxsockets=8', '--lockfile-version=3'],\n"                                \
        "        { stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8', maxBuffer: 1 << 26,\n"                       \
        "          env: { PATH: '/usr/bin:/bin', HOME: '/tmp', LANG: 'C.UTF-8' } });\n"                                \
        "    if (done.status === 0)\n"                                                                                 \
        "        return;\n"                                                                                            \
        "    const lines = String(done.error ?? done.stderr).split('\\n')\n"                                           \
        "        .map((line) => line.replace(/^npm (ERR!|error) ?(code \\S+$)?/, '').trim())\n"                           \
        "        .filter((line) => line && !/^(Log files were|A complete log)/.test(line));\n"                         \
        "    process.stderr.write(`${lines.slice(0, 2).join('; ') || 'npm has ended without a reason'}\\n`);\n"         \
        "    process.exit(1);\n"                                                                                       \
        "}\n"

#define RUNTIME                                                                                                        \
        "process.report.excludeNetwork = true;\n"                                                                      \
        "const glibc = process.report.getReport().header.glibcVersionRuntime;\n"                                       \
        "const runtime = process.versions.node, libc = glibc ? `glibc ${glibc}` : 'musl';\n"

const char packages_npm_resolve[] = RUN_NPM RUNTIME
        "npm('install', '--package-lock-only', '--registry=" PACKAGE_INDEX_BASE "/');\n"
        "const { packages } = JSON.parse(fs.readFileSync('package-lock.json', 'utf8'));\n"
        "console.log(JSON.stringify({ runtime, arch: os.machine(), libc, lock: packages }));\n";

const char packages_node_probe[] =
        "const os = require('node:os');\n" RUNTIME "console.log(JSON.stringify({ runtime, arch: os.machine(), libc }));\n";

/*
 * Only regular files leave the sandbox, so the links of .bin folders are listed; npm's copy of the lock names files
 * present only in the build.
 */
const char packages_npm_install[] = RUN_NPM
        "npm('ci', '--offline', '--registry=http://127.0.0.1:9/');\n"
        "fs.rmSync('node_modules/.package-lock.json', { force: true });\n"
        "const links = [];\n"
        "function walk(folder) {\n"
        "    for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {\n"
        "        const path = `${folder}/${entry.name}`;\n"
        "        if (entry.isSymbolicLink())\n"
        "            links.push({ path: path.slice('node_modules/'.length), target: fs.readlinkSync(path) });\n"
        "        else if (entry.isDirectory())\n"
        "            walk(path);\n"
        "    }\n"
        "}\n"
        "walk('node_modules');\n"
        "fs.renameSync('node_modules', 'tree');\n"
        "console.log(JSON.stringify({ links }));\n";
