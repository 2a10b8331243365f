"""The variables of a context, its working directory, and where pip installs to: below the private HOME."""
import os
import site
import sys
import time

KEPT = ("HOME", "TMPDIR", "IPYTHONDIR", "ABX_PROCESS_ID")  # the context's own
KEPT_PREFIX = "MPL"
PIP = """#!/bin/sh
# pip of this context: installs below its private HOME, where the system's python may be managed by its packages.
case " $* " in
*" --target"* | *" -t "* | *" --prefix"* | *" --root"* | *" --user "*) user= ;;
*) user=1 ;;
esac
case "$1" in
install) export PIP_BREAK_SYSTEM_PACKAGES=1 ${user:+PIP_USER=1} ;;
uninstall) export PIP_BREAK_SYSTEM_PACKAGES=1 ;;
esac
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_WARN_SCRIPT_LOCATION=1
exec %s -m pip "$@"
"""
# For `python3 -m pip`: `user = true` would break virtual environments, so root installs to where the system's pip does.
PIP_CONF = "[install]\nbreak-system-packages = true\n[uninstall]\nbreak-system-packages = true\n"


def is_venv():
    return sys.prefix != sys.base_prefix


class Environment:
    def __init__(self):
        home = os.environ.get("HOME", "")
        self.home = home
        self.bin = os.path.join(home, ".local", "bin")
        self.python_path = os.environ.get("PYTHONPATH", "")
        self.zone = os.environ.get("TZ")
        self.pip = None
        os.environ.setdefault("IPYTHONDIR", os.path.join(home, ".ipython"))
        if not os.path.isdir(home):
            return
        try:
            os.makedirs(self.bin, exist_ok=True)
            self.write_pip()
        except OSError:
            return
        if not is_venv():
            self.see_user_site()
        self.extend_path()

    def write_pip(self):
        quoted = "'%s'" % sys.executable.replace("'", "'\\''")
        text = PIP % quoted
        if is_venv():
            text = text.replace("${user:+PIP_USER=1}", "")
        for name in ("pip", "pip3"):
            path = os.path.join(self.bin, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, 0o755)
        self.pip = os.path.join(self.bin, "pip")
        folder = os.path.join(self.home, ".config", "pip")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "pip.conf"), "w", encoding="utf-8") as file:
            file.write(PIP_CONF)

    def see_user_site(self):
        folder = site.getusersitepackages()
        os.makedirs(folder, exist_ok=True)  # the import system remembers that a folder was missing
        if folder not in sys.path:
            later = [i for i, path in enumerate(sys.path) if path.endswith(("site-packages", "dist-packages"))]
            sys.path.insert(later[0] if later else len(sys.path), folder)

    def extend_path(self):
        """Programs that pip has installed are found, and the pip above comes first."""
        path = os.environ.get("PATH", os.defpath)
        if self.bin not in path.split(os.pathsep):
            os.environ["PATH"] = self.bin + os.pathsep + path

    def replace(self, variables):
        """All variables of the client, but the context's own."""
        for name in list(os.environ):
            if name not in variables and name not in KEPT and not name.startswith(KEPT_PREFIX):
                del os.environ[name]
        self.change({n: v for n, v in variables.items() if n not in KEPT and not n.startswith(KEPT_PREFIX)})

    def change(self, variables):
        """Like export and unset. ValueError: no name or value of a variable."""
        for name, value in variables.items():
            if not name or "=" in name or "\0" in name or "\0" in (value or ""):
                raise ValueError("no variable: %r" % name)
        for name, value in variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self.extend_path()
        self.follow_zone()
        self.follow_python_path()

    def follow_zone(self):
        zone = os.environ.get("TZ")
        if zone != self.zone:
            time.tzset()
            self.zone = zone

    def follow_python_path(self):
        """PYTHONPATH counts though it was set after the start."""
        current = os.environ.get("PYTHONPATH", "")
        if current != self.python_path:
            before = self.python_path.split(os.pathsep)
            after = [path for path in current.split(os.pathsep) if path]
            rest = [path for path in sys.path[1:] if path not in before and path not in after]
            sys.path[1:] = after + rest
            self.python_path = current
