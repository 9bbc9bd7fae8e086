-- The clock and the bounds of time-ordered ids.

-- All times that decide something come from mizan_now(). Tests replace the function in their own database to move time;
-- production has no switch for it. statement_timestamp() is stable: an index can be searched with it, and one
-- statement sees one time.
create function mizan_now() returns timestamptz
    language sql stable parallel safe
    return statement_timestamp();

create function uuid7_floor(at timestamptz) returns uuid
    language sql immutable parallel safe
    return (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;
comment on function uuid7_floor is 'the smallest uuid v7 of this millisecond: a bound for ranges of ids';
