-- What each role may do with each table, as granted by revision 0022. Never edited: later revisions change it.

grant select on alembic_version to mizan_api;
grant select on alembic_version to mizan_checkout;
grant select on alembic_version to mizan_webhooks;
grant select on alembic_version to mizan_scheduler;
grant select on alembic_version to mizan_dashboard;
grant select on alembic_version to mizan_monitor;
grant select on alembic_version to mizan_cli;

grant select on application_methods to mizan_checkout;
grant select, insert, delete on application_methods to mizan_dashboard;
grant select, insert on application_methods to mizan_cli;

grant select (id, merchant_id, public_name_ar, public_name_en) on applications to mizan_checkout;
grant select (id, webhook_url, webhook_secret_version, webhooks_paused_at) on applications to mizan_webhooks;
grant select (id, webhook_url, webhooks_paused_at) on applications to mizan_scheduler;
grant select, insert (id, merchant_id, name, webhook_url), update (name, webhook_url, webhook_secret_version,
    public_name_ar, public_name_en) on applications to mizan_dashboard;
grant select, update (webhooks_paused_at) on applications to mizan_monitor;
grant select, insert (id, merchant_id, name, webhook_url), update (webhook_url, webhook_secret_version,
    webhooks_paused_at) on applications to mizan_cli;

grant select, insert (merchant_id, application_id, member_id, actor, address, action, details, operator_id) on
    audit_log to mizan_dashboard;
grant select, insert (merchant_id, application_id, member_id, actor, address, action, details, operator_id) on
    audit_log to mizan_monitor;
grant select, insert (merchant_id, application_id, member_id, actor, address, action, details, operator_id) on
    audit_log to mizan_cli;

grant select, update (found, last_delivery_id, resent, next_batch_at, finished_at, outcome) on bulk_resends to
    mizan_scheduler;
grant select, insert, update (finished_at, outcome) on bulk_resends to mizan_dashboard;
grant select, insert, update (finished_at, outcome) on bulk_resends to mizan_monitor;

grant select, insert, update (count, expires_at), delete on checkout_limits to mizan_checkout;
grant select (ctid, expires_at), update (expires_at), delete on checkout_limits to mizan_scheduler;

grant select, insert (attempt_id, continuation, phone_hint, encrypted_phone, expires_at), update
    (continuation, encrypted_phone, codes_sent, codes_tried, sent_at, expires_at) on code_challenges to
    mizan_checkout;
grant select (ctid, expires_at), update (sent_at), delete on code_challenges to mizan_scheduler;
grant select (attempt_id, encrypted_phone), update (encrypted_phone) on code_challenges to mizan_cli;

grant select (id, application_id, kind, hash, last_used_at, revoked_at), update (last_used_at) on credentials
    to mizan_api;
grant select (id, application_id, kind, prefix, created_at, last_used_at, revoked_at, issued_by), insert (id,
    application_id, kind, prefix, hash, issued_by), update (revoked_at) on credentials to mizan_dashboard;
grant select, insert (id, application_id, kind, prefix, hash, issued_by), update (revoked_at) on credentials
    to mizan_cli;

grant select, update (processed_offset, replayed, refused, finished_at, outcome) on dead_letter_bulk_replays
    to mizan_scheduler;
grant select, insert (id, actor, origin, final_offset, found), update (finished_at, outcome) on
    dead_letter_bulk_replays to mizan_monitor;
grant select, insert (id, actor, origin, final_offset, found), update (processed_offset, replayed, refused,
    finished_at, outcome) on dead_letter_bulk_replays to mizan_cli;

grant select on dead_letter_dismissals to mizan_scheduler;
grant select, insert (dead_letter_id, topic_id, record_offset, actor, reason) on dead_letter_dismissals to
    mizan_monitor;
grant select, insert (dead_letter_id, topic_id, record_offset, actor, reason) on dead_letter_dismissals to
    mizan_cli;

grant select, insert (dead_letter_id, bulk_replay_id, actor) on dead_letter_replays to mizan_scheduler;
grant select, insert (dead_letter_id, bulk_replay_id, actor) on dead_letter_replays to mizan_monitor;
grant select, insert (dead_letter_id, bulk_replay_id, actor) on dead_letter_replays to mizan_cli;

grant select, insert, update (ended_as, ended_by, ended_by_id, ended_at) on decision_proposals to
    mizan_monitor;
grant select, insert, update (ended_as, ended_by, ended_by_id, ended_at) on decision_proposals to mizan_cli;

grant select (ctid, expires_at), update (at), delete on failed_sign_ins to mizan_scheduler;
grant select, insert, update (failures, expires_at) on failed_sign_ins to mizan_dashboard;
grant select, insert, update (failures, expires_at) on failed_sign_ins to mizan_monitor;

grant select, insert (id, intent_uuid, seq, type, at) on intent_events to mizan_api;
grant insert (id, intent_uuid, seq, type, at, wrong_code) on intent_events to mizan_checkout;
grant select, update (taken_in_at) on intent_events to mizan_webhooks;
grant select, insert (id, intent_uuid, seq, type, at, wrong_code), update (republished_at) on intent_events to
    mizan_scheduler;
grant select on intent_events to mizan_dashboard;
grant select, insert (id, intent_uuid, seq, type, at, wrong_code) on intent_events to mizan_monitor;
grant select, insert (id, intent_uuid, seq, type, at, wrong_code) on intent_events to mizan_cli;

grant select (ctid, expires_at), update (last_failure_at), delete on login_throttles to mizan_scheduler;
grant select, insert, update (failures, last_failure_at, expires_at), delete on login_throttles to
    mizan_dashboard;
grant select, insert, update (failures, last_failure_at, expires_at), delete on login_throttles to
    mizan_monitor;

grant select (id, merchant_id, email, role, created_at, joined_at, removed_at, user_id, changes_seen_at),
    insert (merchant_id, email, role), update (role, joined_at, removed_at, user_id, password_hash,
    changes_seen_at) on members to mizan_dashboard;
grant select (id, merchant_id, email, role, created_at, joined_at, removed_at, user_id), insert (merchant_id,
    email, role), update (joined_at, removed_at, user_id, password_hash) on members to mizan_cli;

grant select (id, name) on merchants to mizan_checkout;
grant select, update (id) on merchants to mizan_dashboard;
grant select on merchants to mizan_monitor;
grant select, insert (name), update (id) on merchants to mizan_cli;

grant select (ctid, expires_at), update (created_at), delete on one_time_codes to mizan_scheduler;
grant select, insert (hash, purpose, subject, is_emailed, expires_at), update (used_at, is_emailed) on
    one_time_codes to mizan_dashboard;

grant select, update (answer, provider_reference, answered_at, state, provider_requests) on operator_inquiries
    to mizan_checkout;
grant select, insert (attempt_id, asked_by, operator_id) on operator_inquiries to mizan_monitor;
grant select, insert (attempt_id, asked_by, operator_id) on operator_inquiries to mizan_cli;

grant select, update (password_hash) on operators to mizan_monitor;
grant select, insert (email, password_hash), update (password_hash, removed_at) on operators to mizan_cli;

grant select, insert (topic, key, payload, trace) on outbox to mizan_api;
grant insert (topic, key, payload, trace) on outbox to mizan_checkout;
grant select, insert (topic, key, payload, trace), delete on outbox to mizan_scheduler;
grant insert (topic, key, payload, trace) on outbox to mizan_dashboard;
grant select (id, created_at), insert (topic, key, payload, trace) on outbox to mizan_monitor;
grant select, insert (topic, key, payload, trace) on outbox to mizan_cli;

grant select, insert, update (state, reason, provider_reference, reference_from_operator, next_verify_at,
    provider_requests, sent_at, verifications, updated_at) on payment_attempts to mizan_checkout;
grant select (ctid, id, intent_uuid, state, sent_at, next_verify_at, verifications), update (next_verify_at,
    verifications) on payment_attempts to mizan_scheduler;
grant select on payment_attempts to mizan_dashboard;
grant select, update (state, reason, provider_reference, reference_from_operator, next_verify_at, updated_at,
    handled_at, handled_note) on payment_attempts to mizan_monitor;
grant select, update (state, reason, provider_reference, reference_from_operator, next_verify_at, updated_at,
    handled_at, handled_note) on payment_attempts to mizan_cli;

grant select, insert (application_id, merchant_reference, reference, amount, currency, description,
    customer_external_id, return_url, metadata, expires_at, trace) on payment_intents to mizan_api;
grant select, update (status, event_seq, updated_at) on payment_intents to mizan_checkout;
grant select (uuid, application_id) on payment_intents to mizan_webhooks;
grant select (ctid, uuid, application_id, status, event_seq, expires_at, updated_at, trace), update (status,
    event_seq, updated_at) on payment_intents to mizan_scheduler;
grant select on payment_intents to mizan_dashboard;
grant select, update (status, event_seq, updated_at) on payment_intents to mizan_monitor;
grant select, update (status, event_seq, updated_at) on payment_intents to mizan_cli;

grant select on provider_accounts to mizan_checkout;
grant select (id, application_id, method, adapter, created_at, replaced_at), insert (id, application_id,
    method, adapter, encrypted_credentials), update (replaced_at) on provider_accounts to mizan_dashboard;
grant select, insert (id, application_id, method, adapter, encrypted_credentials), update
    (encrypted_credentials, replaced_at) on provider_accounts to mizan_cli;

grant select, insert (attempt_id, url) on provider_pages to mizan_checkout;
grant select (ctid, expires_at), update (created_at), delete on provider_pages to mizan_scheduler;

grant select, insert (id, delivery_id, unless_succeeded), update (created_at), delete on resend_requests to
    mizan_scheduler;
grant select (id, unless_succeeded) on resend_requests to mizan_webhooks;
grant select, insert (id, delivery_id) on resend_requests to mizan_dashboard;
grant select, insert (id, delivery_id) on resend_requests to mizan_monitor;
grant select, insert (id, delivery_id) on resend_requests to mizan_cli;

grant select (ctid, expires_at), update (created_at), delete on sessions to mizan_scheduler;
grant select, insert, update (last_seen_at, expires_at, password_at) on sessions to mizan_dashboard;
grant select, insert, update (last_seen_at, expires_at, password_at) on sessions to mizan_monitor;
grant select (hash, person_id, expires_at), update (expires_at) on sessions to mizan_cli;

grant select, insert (email, password_hash, email_verified_at), update (password_hash, email_verified_at) on
    users to mizan_dashboard;
grant select, insert (email, password_hash, email_verified_at), update (password_hash, email_verified_at) on
    users to mizan_cli;

grant select, insert (id, intent_uuid, application_id, event, url, secret_version, next_due_at), update
    (status, tries, step, next_due_at, updated_at, last_status_code, last_failure, set_aside_at) on
    webhook_deliveries to mizan_webhooks;
grant select, update (requeued_at, set_aside_at) on webhook_deliveries to mizan_scheduler;
grant select, insert (id, intent_uuid, application_id, event, url, secret_version, next_due_at, is_test) on
    webhook_deliveries to mizan_dashboard;
grant select on webhook_deliveries to mizan_monitor;
grant select on webhook_deliveries to mizan_cli;

grant select on webhook_secrets to mizan_webhooks;
grant select, insert (application_id, version, encrypted_secret) on webhook_secrets to mizan_dashboard;
grant select, insert (application_id, version, encrypted_secret), update (encrypted_secret) on webhook_secrets
    to mizan_cli;

grant select, insert on webhook_tries to mizan_webhooks;
grant select (delivery_id, number, resend_id, at) on webhook_tries to mizan_scheduler;
grant select on webhook_tries to mizan_dashboard;
grant select on webhook_tries to mizan_monitor;
grant select on webhook_tries to mizan_cli;
