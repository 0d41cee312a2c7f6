#: act: find what the host has in its environment
#: status: completed
import os
bad = [k for k in os.environ if k not in ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_CTYPE", "TZ", "TMPDIR", "SANDBOX_MODE", "MPLBACKEND",
       "MPLCONFIGDIR", "XDG_CACHE_HOME", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS",
       "MKL_NUM_THREADS")]
if bad:
    print("ESCAPED:", bad)
    raise SystemExit(66)
print("contained")
