"""No query of the dashboard finds anything with the ids of another merchant: PostgreSQL itself refuses it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from psycopg import Connection

from services.dashboard.applications.queries import count_pending_with_previous_secret, set_methods
from services.dashboard.deliveries import queries as delivery_queries
from services.dashboard.deliveries.forms import DeliveryFilters, read_delivery_filters
from services.dashboard.deliveries.queries import (
    find_delivery,
    find_pending_resend,
    list_deliveries,
    list_secret_versions,
    list_tries,
)
from services.dashboard.deliveries.search import search_deliveries
from services.dashboard.overview.queries import count_days, list_delivery_times, list_newest_tried
from services.dashboard.payments.forms import PaymentFilters
from services.dashboard.payments.queries import find_payment, list_payments, select_payments
from services.dashboard.payments.search import find_by_index, search_payments
from shared.console.bounded_search import PageRequest
from shared.console.days import local_day
from shared.console.search_text import SearchText
from shared.domain.accounts.failed_sign_ins import list_failed_sign_ins
from shared.domain.accounts.members import find_member, find_members_by_email, list_members
from shared.domain.accounts.sessions import list_sessions
from shared.domain.accounts.users import find_user
from shared.domain.applications.credentials import (
    CredentialKind,
    issue_credential,
    list_credentials,
    list_credentials_of_former_members,
    revoke_credential,
)
from shared.domain.applications.provider_accounts import describe_provider_accounts
from shared.domain.applications.registry import (
    application_names,
    get_application,
    list_merchant_applications,
    rename_application,
)
from shared.domain.applications.webhook_secrets import current_secret_version
from shared.domain.audit_log import list_entries
from shared.domain.deliveries.bulk_resend import get_bulk_resend, list_latest_bulk_resends, stop_bulk_resend
from shared.domain.deliveries.bulk_selection import count_failed, count_waiting, oldest_waiting_at
from shared.domain.deliveries.resend import get_application_id, request_resend
from shared.domain.payment_methods import PaymentMethod
from shared.domain.security_changes import find_unseen_changes, list_security_changes
from shared.platform.database.pool import Database
from shared.platform.errors import RefusedError
from tests.dashboard.merchant_rows import MerchantRows, Merchants


def _days(database: Database, rows: MerchantRows) -> object:
    with database.transaction() as connection:
        counts = count_days(connection, rows.application, local_day(datetime.now(UTC)))
    return counts.created, counts.all_deliveries


def _tries(database: Database, rows: MerchantRows) -> object:
    made = delivery_queries.Delivery(
        rows.delivery, rows.intent, "", "", 1, 1, None, None, None, "", 1, is_test=False, is_set_aside=False
    )
    with database.transaction() as connection:
        return len(list_tries(connection, rows.application, made))


def _in_transaction(query: Callable[[Connection[Any], MerchantRows], object]) -> Callable[..., object]:
    def run(database: Database, rows: MerchantRows) -> object:
        with database.transaction() as connection:
            return query(connection, rows)

    return run


_WAY_BACK = timedelta(days=1)
_SINCE = datetime.now(UTC) - _WAY_BACK
_UNTIL = datetime.now(UTC) + _WAY_BACK
_PAGE = PageRequest(_SINCE.date(), None, 50)
_T = _in_transaction
QUERIES: dict[str, Callable[[Database, MerchantRows], object]] = {
    "list_deliveries": lambda d, r: list_deliveries(d, r.application, DeliveryFilters(), None).deliveries,
    "list_deliveries, filtered": lambda d, r: (
        list_deliveries(d, r.application, read_delivery_filters({"status": "failed"}), None).deliveries
    ),
    "list_deliveries, by id": lambda d, r: (
        list_deliveries(d, r.application, read_delivery_filters({"id": str(r.delivery)}), None).deliveries
    ),
    "search_deliveries": lambda d, r: (
        search_deliveries(d, r.application, DeliveryFilters(), SearchText("order of"), None).deliveries
    ),
    "find_delivery": _T(lambda c, r: find_delivery(c, r.application, r.delivery)),
    "list_tries": _tries,
    "list_secret_versions": _T(lambda c, r: list_secret_versions(c, r.application, [1])),
    "find_pending_resend": _T(lambda c, r: find_pending_resend(c, r.delivery)),
    "list_payments": _T(lambda c, r: list_payments(c.cursor(), r.application, PaymentFilters()).payments),
    "list_payments, duplicates": _T(
        lambda c, r: list_payments(c.cursor(), r.application, PaymentFilters(duplicates=True)).payments
    ),
    "select_payments": _T(
        lambda c, r: select_payments(c.cursor(), r.application, PaymentFilters(), None, [r.intent])
    ),
    "search_payments": lambda d, r: (
        search_payments(d, r.application, PaymentFilters(search="order"), _PAGE).rows
    ),
    "find_by_index": _T(lambda c, r: find_by_index(c.cursor(), r.application, SearchText(str(r.intent)))),
    "find_payment": _T(lambda c, r: find_payment(c, r.application, r.intent)),
    "count_days": _days,
    "list_newest_tried": _T(lambda c, r: list_newest_tried(c, r.application, _SINCE, _UNTIL)),
    "list_delivery_times": _T(lambda c, r: list_delivery_times(c, r.application, _SINCE, _UNTIL)),
    "count_pending_with_previous_secret": _T(
        lambda c, r: count_pending_with_previous_secret(c.cursor(), r.application, 9).count
    ),
    "describe_provider_accounts": _T(lambda c, r: describe_provider_accounts(c.cursor(), r.application)),
    "set_methods": _T(lambda c, r: set_methods(c, r.application, {PaymentMethod.SADAD})),
    "get_application": _T(lambda c, r: get_application(c, r.application)),
    "list_merchant_applications": _T(lambda c, r: list_merchant_applications(c, r.merchant.id)),
    "application_names": _T(lambda c, r: application_names(c, [r.application])),
    "rename_application": _T(lambda c, r: rename_application(c, r.application, "Another name")),
    "current_secret_version": _T(lambda c, r: current_secret_version(c.cursor(), r.application)),
    "list_credentials": _T(lambda c, r: list_credentials(c, r.application)),
    "list_credentials_of_former_members": _T(
        lambda c, r: list_credentials_of_former_members(c, r.merchant.id)
    ),
    "issue_credential": _T(lambda c, r: issue_credential(c, r.application, CredentialKind.API_KEY)),
    "revoke_credential": _T(lambda c, r: revoke_credential(c, r.application, r.credential)),
    "list_members": _T(lambda c, r: list_members(c, r.merchant.id)),
    "find_member": _T(lambda c, r: find_member(c, r.member)),
    "find_members_by_email": _T(lambda c, r: find_members_by_email(c.cursor(), r.email)),
    "find_user": _T(lambda c, r: find_user(c, r.email)),
    "list_sessions": _T(lambda c, r: list_sessions(c, r.member)),
    "list_entries": _T(lambda c, r: list_entries(c, r.merchant.id, before=None, limit=9)),
    "list_security_changes": _T(lambda c, r: list_security_changes(c, r.merchant.id, before=None, limit=9)),
    "list_failed_sign_ins": _T(lambda c, r: list_failed_sign_ins(c, r.merchant.id, before=None, limit=9)),
    "find_unseen_changes": _T(lambda c, r: find_unseen_changes(c.cursor(), r.merchant.id, r.member, "")),
    "count_failed": _T(lambda c, r: count_failed(c, r.application, _SINCE, _UNTIL).count),
    "count_waiting": _T(lambda c, r: count_waiting(c, r.application).count),
    "oldest_waiting_at": _T(lambda c, r: oldest_waiting_at(c, r.application)),
    "get_application_id": _T(lambda c, r: get_application_id(c, r.delivery)),
    "request_resend": _T(lambda c, r: request_resend(c, r.delivery, uuid4())),
    "get_bulk_resend": _T(lambda c, r: get_bulk_resend(c, r.application, r.bulk_resend)),
    "list_latest_bulk_resends": _T(lambda c, r: list_latest_bulk_resends(c, r.application)),
    "stop_bulk_resend": _T(lambda c, r: stop_bulk_resend(c, r.application, r.bulk_resend)),
}


def test_no_query_of_the_dashboard_finds_anything_with_the_ids_of_another_merchant(
    merchants: Merchants, subtests: Any
) -> None:
    """With the other merchant's ids it does what it does with unknown ones; with one's own ids it finds something."""
    mine, other = merchants.mine, merchants.other
    merchants.world.run("update bulk_resends set finished_at = null, outcome = null")
    merchants.world.run("update members set changes_seen_at = now() - interval '1 day'")
    unknown = replace(
        other,
        merchant=replace(
            other.merchant, id=uuid4(), application=replace(other.merchant.application, id=uuid4())
        ),
        email="nobody@example.ly",
        member=uuid4(),
        credential=uuid4(),
        intent=uuid4(),
        delivery=uuid4(),
        bulk_resend=uuid4(),
    )
    database = merchants.of(mine)
    for name, query in QUERIES.items():
        with subtests.test(name):
            nothing = _outcome(query, database, unknown)
            assert _outcome(query, database, other) == nothing
            assert _outcome(query, database, mine) != nothing


def _outcome(
    query: Callable[[Database, MerchantRows], object], database: Database, rows: MerchantRows
) -> object:
    try:
        return query(database, rows)
    except (RefusedError, AssertionError) as refused:
        return type(refused)
