"""Which language a page is in: `?lang=en` chooses, a cookie remembers, Arabic is the default."""

from flask import Flask, Response, g, request

from examples.shop import words

_COOKIE = "shop-lang"
_ONE_YEAR_S = 365 * 86_400


def current_language() -> str:
    wanted = request.args.get("lang") or request.cookies.get(_COOKIE)
    return wanted if wanted in words.LANGUAGES else words.DEFAULT


def speak(app: Flask, *, is_https: bool) -> None:
    @app.before_request
    def choose() -> None:
        g.lang = current_language()

    @app.after_request
    def remember(response: Response) -> Response:
        if request.args.get("lang") in words.LANGUAGES:
            response.set_cookie(
                _COOKIE,
                # Not g.lang: a form that was refused before `choose` has none.
                current_language(),
                max_age=_ONE_YEAR_S,
                httponly=True,
                samesite="Lax",
                secure=is_https,
            )
        return response
