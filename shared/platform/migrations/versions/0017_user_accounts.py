"""One account for each email address, with memberships; and whether an invitation was sent by email.

Until now each membership had a password of its own. The account of an address takes the password of one membership: of
one that an operator created, else of the only owner of a merchant, else of the one that joined first. Memberships with
the same password belong to the account. One with another password may have been accepted by somebody else, because
owners could see invitation links: it becomes an open invitation again, and its sessions end.

`members.password_hash` stays for the previous version, as a copy of the account's. Triggers keep it, and refuse
passwords that the previous version sets; a later revision removes them with the column.
"""

from alembic import op

revision = "0017"
down_revision = "0016"

# In one transaction, while nobody writes memberships: what the previous version wrote in between would be lost.
_MOVE_PASSWORDS = """
do $do$
begin
    lock table members in share row exclusive mode;

    with joined as (
        select m.email, m.password_hash, m.joined_at, m.id,
               exists (select from audit_log as l
                       where l.action = 'member_created' and l.merchant_id = m.merchant_id
                         and l.details ->> 'email' = m.email and l.member_id is null
                         and l.at between m.created_at and m.created_at + interval '1 minute'
                         and m.joined_at <= l.at) as is_by_operator,
               m.role = 'owner' and not exists (
                   select from members as o
                   where o.merchant_id = m.merchant_id and o.id <> m.id and o.role = 'owner'
                     and o.removed_at is null and o.joined_at is not null) as is_only_owner
        from members as m
        where m.removed_at is null and m.joined_at is not null and m.user_id is null)
    insert into users (email, password_hash, email_verified_at)
    select distinct on (email) email, password_hash, case when is_by_operator then mizan_now() end
    from joined order by email, is_by_operator desc, is_only_owner desc, joined_at, id
    on conflict (email) do nothing;

    update members as m set user_id = u.id from users as u
    where u.email = m.email and u.password_hash = m.password_hash
      and m.removed_at is null and m.joined_at is not null and m.user_id is null;

    insert into audit_log (merchant_id, actor, action, details)
    select merchant_id, 'mizan', 'member_set_aside', jsonb_build_object('email', email) from members
    where removed_at is null and joined_at is not null and user_id is null;
    update sessions set expires_at = mizan_now()
    where expires_at > mizan_now() and person_id in (
        select id from members where removed_at is null and joined_at is not null and user_id is null);
    update members set joined_at = null, password_hash = null
    where removed_at is null and joined_at is not null and user_id is null;

    create or replace trigger members_password_copy before insert or update on members
        for each row execute function copy_account_password();
end $do$"""

_STATEMENTS = (
    """
    create table if not exists users (
        id                 uuid primary key default uuidv7(),
        email              text not null unique check (email <> '' and email = lower(email)),
        password_hash      text not null,
        email_verified_at  timestamptz,
        created_at         timestamptz not null default mizan_now()
    )""",
    "comment on table users is 'accounts of the dashboard: one for each email address, with memberships in `members`'",
    "comment on column users.password_hash is 'argon2id'",
    """
    comment on column users.email_verified_at is
        'when an emailed invitation was accepted or an operator vouched; null: anybody may have chosen the password'""",
    "alter table members add column if not exists user_id uuid",
    "comment on column members.user_id is 'the account of a member who has joined; null while the invitation is open'",
    "comment on column members.password_hash is 'a copy of the account''s, for the previous version of the dashboard'",
    "drop index concurrently if exists members_by_user",
    "create index concurrently members_by_user on members (user_id)",
    "alter table members drop constraint if exists members_user_id_fkey",
    "alter table members add constraint members_user_id_fkey foreign key (user_id) references users not valid",
    "alter table members validate constraint members_user_id_fkey",
    "alter table one_time_codes add column if not exists is_emailed boolean not null default false",
    "comment on column one_time_codes.is_emailed is 'it was sent by email, and shown to nobody else'",
    """
    create or replace function copy_account_password() returns trigger language plpgsql as $$
    declare
        account_hash text := (select password_hash from users where id = new.user_id);
    begin
        if new.user_id is not null and (tg_op = 'INSERT' or new.user_id is distinct from old.user_id) then
            new.password_hash := account_hash;
        elsif new.password_hash is distinct from account_hash and new.password_hash is not null
              and (tg_op = 'INSERT' or new.password_hash is distinct from old.password_hash) then
            raise exception 'the previous version cannot set passwords any more: restart it as the new one';
        end if;
        return new;
    end $$""",
    """
    create or replace function pass_on_account_password() returns trigger language plpgsql as $$
    begin
        update members set password_hash = new.password_hash where user_id = new.id;
        return null;
    end $$""",
    """
    create or replace trigger users_password_copy after update of password_hash on users
        for each row execute function pass_on_account_password()""",
    _MOVE_PASSWORDS,
    "alter table members drop constraint if exists members_joined_has_user",
    """
    alter table members add constraint members_joined_has_user
        check (removed_at is not null or (joined_at is null) = (user_id is null)) not valid""",
    "alter table members validate constraint members_joined_has_user",
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in _STATEMENTS:
            op.execute(statement)
