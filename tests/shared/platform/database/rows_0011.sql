-- At least one row of every table of revision 0011, all columns filled where the schema allows it.
insert into merchants (id, name) values ('00000000-0000-7000-8000-000000000001', 'Bakery');
insert into applications (id, merchant_id, name, webhook_url, webhook_secret_version, webhooks_paused_at)
values ('00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000001', 'Shop',
        'https://shop.example.ly/hooks', 1, now());
insert into webhook_secrets (application_id, version, sealed)
values ('00000000-0000-7000-8000-000000000002', 1, 'sealed secret');
insert into credentials (application_id, kind, prefix, hash, last_used_at, revoked_at)
values ('00000000-0000-7000-8000-000000000002', 'api_key', 'mk_1', sha256('key'), now(), now());
insert into application_methods values ('00000000-0000-7000-8000-000000000002', 'card');
insert into provider_accounts (id, application_id, method, adapter, sealed, replaced_at)
values ('00000000-0000-7000-8000-000000000003', '00000000-0000-7000-8000-000000000002', 'card', 'plutu',
        'sealed credentials', now());
insert into payment_intents (uuid, application_id, merchant_reference, reference, amount, currency, description,
                             customer_external_id, return_url, metadata, expires_at, trace)
values ('00000000-0000-7000-8000-000000000004', '00000000-0000-7000-8000-000000000002', 'order 1', 'abc', 1000, 'LYD',
        'bread', 'c1', 'https://shop.example.ly', '{"b": 1, "a": 2}', now(), '00-1-2-01');
insert into payment_attempts (intent_uuid, method, provider, state, reason, provider_reference, next_verify_at,
                              sendings, sent_at, verifications, provider_account_id)
values ('00000000-0000-7000-8000-000000000004', 'card', 'plutu', 'sent', 'late', 'p1', now(), 3, now(), 2,
        '00000000-0000-7000-8000-000000000003');
insert into payment_attempts (intent_uuid, method, provider, state, handled_at, handled_note)
values ('00000000-0000-7000-8000-000000000004', 'card', 'plutu', 'duplicate', now(), 'refunded');
insert into outbox (topic, key, payload, trace) values ('payment_intents.events', 'key', '{}', '00-1-2-01');
insert into intent_events (id, intent_uuid, seq, type, at, taken_in_at, republished_at)
values (uuidv7(), '00000000-0000-7000-8000-000000000004', 1, 'payment_intent.created', now(), now(), now()),
       (uuid7_floor(now() + interval '10 years'), '00000000-0000-7000-8000-000000000004', 2, 'payment_intent.succeeded',
        now(), now(), now());
insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, tries, step, next_due_at,
                                last_status_code, last_failure, redriven_at, parked_at, is_test)
values (uuidv7(), '00000000-0000-7000-8000-000000000004', '00000000-0000-7000-8000-000000000002',
        'payment_intent.succeeded', 'https://shop.example.ly/hooks', 1, 2, 3, now(), 503, 'timeout', now(), now(), true);
insert into webhook_tries (delivery_id, number, step, resend_id, at, duration_ms, url, status_code, failure, answer)
values (uuidv7(), 1, 1, uuidv7(), now(), 20, 'https://shop.example.ly/hooks', 200, 'none', 'thanks');
insert into sessions (hash, person_id, expires_at, address, browser) values (sha256('s'), uuidv7(), now(), '::1', 'Firefox');
insert into one_time_codes (hash, purpose, subject, used_at, expires_at)
values (sha256('c'), 'invitation', uuidv7(), now(), now());
insert into login_throttles (key, failures, expires_at) values (sha256('t'), 3, now());
insert into code_challenges (attempt_id, continuation, phone_hint, sealed_phone, codes_sent, codes_tried, expires_at)
values (uuidv7(), 'process 1', '…323', 'sealed phone', 2, 1, now());
insert into provider_pages (attempt_id, url) values (uuidv7(), 'https://provider.example.ly/pay');
insert into checkout_limits (key, count, expires_at) values (sha256('l'), 4, now());
insert into members (id, merchant_id, email, role, password_hash, joined_at, removed_at)
values ('00000000-0000-7000-8000-000000000005', '00000000-0000-7000-8000-000000000001', 'a@example.ly', 'owner',
        'argon2id', now(), now());
insert into operators (id, email, password_hash, removed_at)
values ('00000000-0000-7000-8000-000000000006', 'o@example.ly', 'argon2id', now());
insert into audit_log (merchant_id, application_id, member_id, actor, address, action, details)
values ('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000002',
        '00000000-0000-7000-8000-000000000005', 'a@example.ly', '::1', 'secret_rolled', '{"version": 2}');
insert into audit_log (operator_id, actor, action)
values ('00000000-0000-7000-8000-000000000006', 'o@example.ly', 'dead_letters_replayed');
insert into resend_requests (id, delivery_id) values (uuidv7(), uuidv7());
insert into bulk_resends (id, application_id, since, until, found, is_all, reached, resent, finished_at, outcome)
values (uuidv7(), '00000000-0000-7000-8000-000000000002', now() - interval '1 day', now(), 7, false, uuidv7(), 5, now(),
        'stopped');
insert into letter_replay_runs (id, actor, origin, reached, last, found, replayed, refused, finished_at, outcome)
values ('00000000-0000-7000-8000-000000000007', 'o@example.ly', 'webhooks.deliver', 8, 9, 10, 6, 1, now(), 'stopped');
insert into letter_replays (letter_id, run_id, actor)
values (uuidv7(), '00000000-0000-7000-8000-000000000007', 'o@example.ly');
