"""The routes of this room: each says whom it is for."""

from flask import Blueprint

from services.dashboard.applications.creating import ApplicationPages
from services.dashboard.applications.credentials import CredentialPages
from services.dashboard.applications.providers import ProviderPages
from services.dashboard.applications.settings import SettingsPages
from services.dashboard.applications.webhook import WebhookPages
from services.dashboard.applications.words import words
from services.dashboard.dependencies import Dependencies
from shared.console.guard import add_route
from shared.domain.accounts.roles import Permission

_POST = ("POST",)
_HERE = "/applications/<application>"


def applications_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("applications", __name__)
    blueprint.context_processor(words)
    pages = ApplicationPages(dependencies)
    add_route(blueprint, "/", pages.listing, Permission.READ)
    add_route(blueprint, "/applications/new", pages.new, Permission.APPLICATIONS)
    add_route(blueprint, "/applications/new", pages.create, Permission.APPLICATIONS, _POST)
    settings = SettingsPages(dependencies)
    add_route(blueprint, f"{_HERE}/settings", settings.settings, Permission.READ)
    add_route(blueprint, f"{_HERE}/settings/name", settings.rename, Permission.APPLICATIONS, _POST)
    add_route(blueprint, f"{_HERE}/settings/methods", settings.choose_methods, Permission.APPLICATIONS, _POST)
    provider, provider_rule = ProviderPages(dependencies), f"{_HERE}/settings/providers/<method>"
    add_route(blueprint, provider_rule, provider.provider, Permission.APPLICATIONS)
    add_route(blueprint, provider_rule, provider.set_provider, Permission.APPLICATIONS, _POST)
    credentials, credentials_rule = CredentialPages(dependencies), f"{_HERE}/credentials"
    revoke_rule = f"{credentials_rule}/<uuid:credential>/revoke"
    add_route(blueprint, credentials_rule, credentials.credentials, Permission.READ)
    add_route(blueprint, f"{credentials_rule}/<kind>", credentials.issue, Permission.CREDENTIALS, _POST)
    add_route(blueprint, revoke_rule, credentials.revoke, Permission.CREDENTIALS, _POST)
    webhook = WebhookPages(dependencies)
    add_route(blueprint, f"{_HERE}/webhook", webhook.webhook, Permission.READ)
    add_route(blueprint, f"{_HERE}/webhook/url", webhook.set_url, Permission.WEBHOOK, _POST)
    add_route(blueprint, f"{_HERE}/webhook/url/remove", webhook.remove_url, Permission.WEBHOOK, _POST)
    add_route(blueprint, f"{_HERE}/webhook/secret", webhook.roll_secret, Permission.WEBHOOK, _POST)
    add_route(blueprint, f"{_HERE}/webhook/test", webhook.send_test, Permission.WEBHOOK, _POST)
    return blueprint
