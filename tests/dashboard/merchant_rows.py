"""Two merchants with a row in every table that has rows of merchants, and what the dashboard sees of them."""

from dataclasses import dataclass
from uuid import UUID

from services.dashboard.people.invitations import invite
from services.dashboard.row_security import RowScope, ScopedDatabase
from shared.domain.accounts.roles import Role
from shared.domain.accounts.sessions import start_session
from shared.domain.applications.provider_accounts import ProviderName, set_provider_account
from shared.domain.audit_log import Action, Actor, add_audit_entry
from shared.domain.intents.states import IntentStatus
from shared.domain.payment_methods import PaymentMethod
from shared.platform.database.pool import Database
from tests.dashboard.delivery_rows import Deliveries
from tests.dashboard.payment_rows import make_attempt, make_intent
from tests.dashboard.world import ROLE, DashboardWorld, Merchant

_FORMER = """
insert into members (merchant_id, email, role, removed_at) values (%s, %s, 'owner', now()) returning id"""
_EVENT = """
insert into intent_events (id, intent_uuid, seq, type, at) values (%s, %s, 1, 'payment_intent.succeeded', now())"""
_RESEND = "insert into resend_requests (id, delivery_id) values (uuidv7(), %s)"
_BULK = """
insert into bulk_resends (id, application_id, since, until, found, is_count_exact, last_delivery_id, finished_at,
                          outcome)
values (uuidv7(), %s, now() - interval '1 hour', now(), 1, true, uuidv7(), now(), 'done') returning id"""
_FAILED_SIGN_IN = """
insert into failed_sign_ins (minute, service, person_id, merchant_id, reason, expires_at)
values (date_trunc('minute', now()), 'dashboard', %s, %s, 'wrong_password', now() + interval '1 day')"""
_FORMER_CREDENTIAL = """
update credentials set issued_by = %s where application_id = %s and kind = 'api_key' returning id"""

TABLES = """
select relname, relrowsecurity from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
and not relispartition order by 1"""

_READABLE = """
select c.relname, string_agg(quote_ident(a.attname), ', ' order by a.attnum) from pg_class as c
join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relrowsecurity and has_column_privilege(%s, c.oid, a.attnum, 'select') group by c.relname"""


@dataclass(frozen=True)
class MerchantRows:
    merchant: Merchant
    email: str
    """Of its owner."""
    member: UUID
    session_token: str
    invitation_token: str
    credential: UUID
    """Of a former member."""
    intent: UUID
    delivery: UUID
    bulk_resend: UUID

    @property
    def application(self) -> UUID:
        return self.merchant.application.id


def fill_merchant(world: DashboardWorld, name: str) -> MerchantRows:
    """Create a merchant with a row in every table that has rows of merchants."""
    merchant = world.make_merchant(name)
    application = merchant.application.id
    email = world.make_member(Role.OWNER, merchant)
    ((member,),) = world.rows("select id from members where email = %s", email)
    ((former,),) = world.rows(_FORMER, merchant.id, f"former@{merchant.id}.example")
    ((credential,),) = world.rows(_FORMER_CREDENTIAL, former, application)
    with world.database.transaction() as connection:
        token = start_session(connection, member, "203.0.113.7", "browser")
        _member, invitation = invite(connection, merchant.id, f"new@{merchant.id}.example", Role.VIEWER)
        set_provider_account(
            connection,
            world.box,
            application,
            PaymentMethod.CARD,
            provider=ProviderName.PLUTU,
            credentials={"api_key": "k", "access_token": "t", "secret_key": "s"},
        )
        actor = Actor(email, member, "203.0.113.7")
        for action in (Action.SIGNED_IN, Action.CREDENTIAL_ISSUED):
            add_audit_entry(connection, actor, action, merchant_id=merchant.id, application_id=application)
    intent = make_intent(world, f"order of {name}", IntentStatus.SUCCEEDED, application_id=application)
    make_attempt(world, intent, "paid")
    make_attempt(world, intent, "duplicate")
    deliveries = Deliveries(world.database, application)
    delivery = deliveries.make("failed", 503, intent=intent)
    for other in (deliveries.make("pending", 500), deliveries.make("succeeded", 200, intent=intent)):
        deliveries.add_try(other)
    deliveries.add_try(delivery, 1, 503)
    world.run(_EVENT, delivery, intent)
    world.run(_RESEND, delivery)
    ((bulk,),) = world.rows(_BULK, application)
    world.run(_FAILED_SIGN_IN, member, merchant.id)
    return MerchantRows(merchant, email, member, token, invitation, credential, intent, delivery, bulk)


class Merchants:
    """Two merchants with a row in each table, and databases that see the rows of one, as the dashboard does."""

    def __init__(self, world: DashboardWorld) -> None:
        self.world = world
        self.readable: dict[str, str] = dict(world.rows(_READABLE, ROLE))
        """The columns that the dashboard may read of each table with row-level security."""
        self.mine = fill_merchant(world, "Mine")
        self.rows_of_mine = self.all_rows(world.database)
        self.other = fill_merchant(world, "Other")

    def database(self, scope: RowScope) -> ScopedDatabase:
        return ScopedDatabase(self.world.service_database, lambda: scope)

    def of(self, rows: MerchantRows) -> ScopedDatabase:
        return self.database(RowScope(rows.merchant.id, rows.email))

    def all_rows(self, database: Database) -> dict[str, list[str]]:
        """Return what a database shows of the tables and columns that the dashboard may read."""
        with database.cursor() as cursor:
            return {
                table: [
                    row[0]
                    for row in cursor.execute(
                        f"select r::text from (select {columns} from {table}) as r order by 1".encode()
                    )
                ]
                for table, columns in self.readable.items()
            }
