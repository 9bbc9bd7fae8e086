-- Replays of dead letters. The dead letters themselves are records of the topic dead_letters, which has one partition.

create table dead_letter_bulk_replays (
    id                uuid primary key,
    actor             text not null check (actor <> ''),
    origin            text,
    processed_offset  bigint not null default -1,
    final_offset      bigint not null,
    found             integer not null check (found > 0),
    replayed          integer not null default 0,
    refused           integer not null default 0,
    created_at        timestamptz not null default mizan_now(),
    finished_at       timestamptz,
    outcome           text check (outcome in ('done', 'stopped')),
    check ((finished_at is null) = (outcome is null))
);
comment on table dead_letter_bulk_replays is 'replays of many dead letters to their topics of origin, a few at a time';
comment on column dead_letter_bulk_replays.origin is 'only dead letters of this topic; null: of all';
comment on column dead_letter_bulk_replays.processed_offset is 'the offset in dead_letters that was processed last';
comment on column dead_letter_bulk_replays.final_offset is 'the offset in dead_letters that it ends with';
comment on column dead_letter_bulk_replays.refused is 'dead letters whose original record no longer exists';
create unique index dead_letter_bulk_replays_one_running on dead_letter_bulk_replays ((true))
    where finished_at is null;
create index dead_letter_bulk_replays_by_time on dead_letter_bulk_replays (created_at);

create table dead_letter_replays (
    dead_letter_id  uuid primary key,
    bulk_replay_id  uuid references dead_letter_bulk_replays,
    actor           text not null check (actor <> ''),
    replayed_at     timestamptz not null default mizan_now()
);
comment on table dead_letter_replays is 'dead letters that were replayed to their topic of origin';
comment on column dead_letter_replays.dead_letter_id is
    'a hash of the record''s origin and of the time at which it became a dead letter';
