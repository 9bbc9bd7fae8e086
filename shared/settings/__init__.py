"""The settings: what they are (`model`), and the one place that reads the environment for them (`reading`)."""

from shared.settings.model import (
    ApiSettings,
    CheckoutSettings,
    DashboardSettings,
    DatabaseSettings,
    Environment,
    KafkaSettings,
    KeptSettings,
    MailSettings,
    MonitorSettings,
    PublicUrls,
    SandboxSettings,
    Settings,
    TracingSettings,
    WebhookSettings,
)
from shared.settings.reading import (
    Problems,
    Reading,
    SettingsError,
    read_environment,
    read_operator_environment,
    read_settings,
)

__all__ = [
    "ApiSettings",
    "CheckoutSettings",
    "DashboardSettings",
    "DatabaseSettings",
    "Environment",
    "KafkaSettings",
    "KeptSettings",
    "MailSettings",
    "MonitorSettings",
    "Problems",
    "PublicUrls",
    "Reading",
    "SandboxSettings",
    "Settings",
    "SettingsError",
    "TracingSettings",
    "WebhookSettings",
    "read_environment",
    "read_operator_environment",
    "read_settings",
]
