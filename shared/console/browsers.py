"""Which browser and system a user agent names, in words for the list of one's sessions.

A short table instead of a library: people look for the browser that is not theirs, and need no versions and devices.
A user agent is whatever the client sent, so nothing of it but these names is taken over.
"""

from flask_babel import gettext as _

# In this order: most browsers also name the ones that they are made from.
_BROWSERS = {
    "Edg/": "Edge",
    "EdgA/": "Edge",
    "EdgiOS/": "Edge",
    "OPR/": "Opera",
    "OPT/": "Opera",
    "SamsungBrowser/": "Samsung Internet",
    "HuaweiBrowser/": "Huawei Browser",
    "MiuiBrowser/": "Mi Browser",
    "UCBrowser/": "UC Browser",
    "YaBrowser/": "Yandex Browser",
    "Firefox/": "Firefox",
    "FxiOS/": "Firefox",
    "CriOS/": "Chrome",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
    "curl/": "curl",
    "python-requests/": "Python requests",
}
_SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "CrOS": "ChromeOS",
    "Windows": "Windows",
    "Macintosh": "macOS",
    "Linux": "Linux",
}


def browser_label(user_agent: str | None) -> str:
    """Return for example "Firefox on Android"; only what is known of the two, or that neither is."""
    given = user_agent or ""
    browser = next((name for mark, name in _BROWSERS.items() if mark in given), None)
    system = next((name for mark, name in _SYSTEMS.items() if mark in given), None)
    if browser and system:
        return str(_("%(browser)s on %(system)s", browser=browser, system=system))
    if browser:
        return browser
    return str(_("Unknown browser on %(system)s", system=system) if system else _("Unknown browser"))
