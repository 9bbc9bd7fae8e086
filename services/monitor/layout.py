"""What every page has around it: who is signed in, and where one can go."""

from flask import Flask, g, request


def lay_out(app: Flask) -> None:
    @app.context_processor
    def surroundings() -> dict[str, object]:
        who = g.get("signed_in")
        return {
            "signed_in": who is not None,
            "operator": who.operator if who else None,
            "section": request.blueprint,
        }
