"""Pages of an application's webhook: its URL, its secret, and test deliveries."""

from dataclasses import dataclass
from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _

from services.dashboard.access import record_action
from services.dashboard.applications.form_tokens import FormPurpose, FormTokenExpiredError, FormTokens
from services.dashboard.applications.forms import read_url
from services.dashboard.applications.labels import FORM_EXPIRED, refusal_text
from services.dashboard.applications.queries import count_pending_with_previous_secret
from services.dashboard.applications.test_delivery import send_test_delivery
from services.dashboard.dependencies import Dependencies
from shared.domain.applications.errors import WebhookSecretRolledError
from shared.domain.applications.registry import Application, set_webhook_url
from shared.domain.applications.webhook_secrets import current_secret_version, roll_webhook_secret
from shared.domain.audit_log import Action
from shared.domain.deliveries.pause import SendingRefusedError, paused_since
from shared.platform.database.stable_plans import in_index_order
from shared.platform.outbound_url import WebhookUrlError

_SEE_OTHER = 303
_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class WebhookPages:
    dependencies: Dependencies

    def webhook(self, application: Application) -> ResponseReturnValue:
        return self._page(application)

    def set_url(self, application: Application) -> ResponseReturnValue:
        try:
            url = read_url(allow_private=self.dependencies.settings.webhooks.allow_private)
        except WebhookUrlError as error:
            page = self._page(
                application, url=request.form.get("url", ""), errors={"url": refusal_text(error)}
            )
            return page, _UNPROCESSABLE
        with self.dependencies.database.transaction() as connection:
            before = set_webhook_url(connection, application.id, url)
            if url != before:
                details = {"url": url, "before": before}
                record_action(
                    connection, Action.WEBHOOK_URL_SET, application_id=application.id, details=details
                )
        flash(_("The webhook URL was saved. New deliveries go there."), "good")
        return _redirect_to_webhook(application)

    def remove_url(self, application: Application) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            before = set_webhook_url(connection, application.id, None)
            if before is not None:
                details = {"before": before}
                record_action(
                    connection, Action.WEBHOOK_URL_REMOVED, application_id=application.id, details=details
                )
        flash(_("The webhook URL was removed. No webhooks are sent any more."), "good")
        return _redirect_to_webhook(application)

    def roll_secret(self, application: Application) -> ResponseReturnValue:
        """Roll the secret if the form was confirmed: in the dialog of the script, or on the page that asks here."""
        version = request.form.get("version", "")
        if request.form.get("confirmed") != "yes":
            return self._ask_before_roll(application, version)
        # -1 matches no version, so nothing is rolled.
        replacing = int(version) if version.isdecimal() and len(version) < 10 else -1
        try:
            with self.dependencies.database.transaction() as connection:
                secret = roll_webhook_secret(
                    connection, self.dependencies.webhook_box, application.id, replacing=replacing
                )
                details = {"version": secret.version}
                record_action(
                    connection, Action.WEBHOOK_SECRET_ROLLED, application_id=application.id, details=details
                )
        except WebhookSecretRolledError as error:
            flash(refusal_text(error), "info")
            return _redirect_to_webhook(application)
        return render_template("applications/rolled.html", application=application, secret=secret)

    def _ask_before_roll(self, application: Application, version: str) -> str:
        with in_index_order(self.dependencies.database) as cursor:
            current = current_secret_version(cursor, application.id)
            # Every pending delivery has the current secret or an earlier one.
            queued = count_pending_with_previous_secret(
                cursor, application.id, current.number + 1 if current else 0
            )
        return render_template(
            "applications/roll_secret.html", application=application, version=version, queued=queued
        )

    def send_test(self, application: Application) -> ResponseReturnValue:
        form_tokens = FormTokens(self.dependencies.form_box)
        try:
            delivery_id = form_tokens.read(
                request.form.get("form_token", ""), FormPurpose.TEST_DELIVERY, application.id
            )
            with self.dependencies.database.transaction() as connection:
                if send_test_delivery(connection, application.id, delivery_id):
                    details = {"delivery": str(delivery_id)}
                    record_action(
                        connection, Action.TEST_DELIVERY_SENT, application_id=application.id, details=details
                    )
        except FormTokenExpiredError:
            flash(str(FORM_EXPIRED), "bad")
            return _redirect_to_webhook(application)
        except SendingRefusedError as error:
            flash(refusal_text(error), "bad")
            return _redirect_to_webhook(application)
        flash(_("The test delivery is on its way. Its tries are shown here."), "good")
        return redirect(
            url_for("deliveries.show", application=application.id, delivery=delivery_id), _SEE_OTHER
        )

    def _page(self, application: Application, **more: Any) -> str:
        with in_index_order(self.dependencies.database) as cursor:
            version = current_secret_version(cursor, application.id)
            paused_at = paused_since(cursor, application.id)
            previous = count_pending_with_previous_secret(
                cursor, application.id, version.number if version else 0
            )
            form_token = FormTokens(self.dependencies.form_box).create(
                cursor, FormPurpose.TEST_DELIVERY, application.id
            )
        values = {"url": application.webhook_url or "", "errors": {}, **more}
        return render_template(
            "applications/webhook.html",
            application=application,
            version=version,
            paused_at=paused_at,
            previous=previous,
            form_token=form_token,
            **values,
        )


def _redirect_to_webhook(application: Application) -> ResponseReturnValue:
    return redirect(url_for("applications.webhook", application=application.id), _SEE_OTHER)
