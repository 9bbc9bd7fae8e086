"""Real values for the placeholders in the commands of the pages: `APP`, `INTENT`, `DELIVERY` and the like."""

import re
from collections.abc import Callable
from itertools import count

import requests

from tests.stack.running_stack import RunningStack
from tests.waiting import eventually


class Placeholders:
    """An application of a running stack, with a paid intent and its delivery."""

    def __init__(self, stack: RunningStack) -> None:
        self._stack = stack
        self._numbers = count(1)
        app = ("app", "create", "--name", "Oya", "--webhook-url", "https://oya.example/hooks", "--json")
        self._application = stack.mizan(*app)
        self.paid_intent = self._new_intent()
        stack.mizan("pay", self.paid_intent, "--card", "4242424242424242", "--json")
        secret, body = stack.directory / "secret", stack.directory / "body.json"
        secret.write_text(self._application["webhook_secret"])
        body.write_text("{}")
        signature = stack.mizan("sign", "--secret-file", str(secret), str(body), "--json")["signature"]
        token = stack.mizan("app", "issue-token", self._application["application_id"], "--json")[
            "access_token"
        ]
        self._values: dict[str, Callable[[], str]] = {
            "APP": lambda: self._application["application_id"],
            "DELIVERY": lambda: eventually(self._delivery),
            "E": lambda: "amal@oya.example",
            "F": lambda: str(secret),
            "INTENT": self._new_intent,
            "S": lambda: signature,
            "TEXT": lambda: self.paid_intent,
            "URL": lambda: "https://oya.example/new",
            "at_Xy12": lambda: token[:7],
            "body.json": lambda: str(body),
        }

    def fill_in(self, command: str) -> str:
        names = "|".join(map(re.escape, self._values))
        return re.sub(rf"(?<=\s)({names})(?=\s|$)", lambda name: self._values[name[0]](), command)

    def _new_intent(self) -> str:
        application = self._application
        response = requests.post(
            f"{self._stack.read()['api_base_url']}/payment-intents",
            json={"merchant_reference": f"order-{next(self._numbers)}", "amount": 25_000, "currency": "LYD"},
            headers={
                "X-API-Key": application["api_key"],
                "Authorization": f"Bearer {application['access_token']}",
            },
            timeout=10,
        )
        return str(response.json()["data"]["uuid"])

    def _delivery(self) -> str | None:
        timeline = self._stack.mizan("intent", "show", self.paid_intent, "--json")["timeline"]
        return next((entry["delivery_id"] for entry in timeline if entry.get("delivery_id")), None)
