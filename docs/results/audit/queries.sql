-- The audit's reading of a store: raw tables only, none of the views, nothing that was computed from other rows.
-- A trial that was tried again counts as it ended last, and rows of earlier attempts are left out.

-- name: run
SELECT seed, command, git_commit FROM raw.run;

-- name: study
SELECT text FROM raw.study;

-- name: technologies
SELECT name FROM raw.technology ORDER BY position;

-- name: trials
WITH last_end AS (
    SELECT trial_id, state, void_reasons, session,
           row_number() OVER (PARTITION BY trial_id ORDER BY session DESC, ended_at_utc DESC) AS nth
    FROM raw.trial)
SELECT p.trial_id, p.technology, p.topology, p.message, p.load, p.restart, p.window_ns, p.warm_up_most_ns, p.limit_ns,
       coalesce(e.state, 'PLANNED') AS state, coalesce(e.void_reasons, []) AS void_reasons
FROM raw.plan p LEFT JOIN last_end e ON e.trial_id = p.trial_id AND e.nth = 1
ORDER BY p.trial_id;

-- name: seconds
SELECT s.trial_id, s.second, s.replied, s.late, s.wrong, s.failed, s.not_sent, s.response_times
FROM raw.second s
LEFT JOIN (SELECT trial_id, max(session) AS session FROM raw.trial GROUP BY trial_id) e ON e.trial_id = s.trial_id
WHERE s.second >= 0 AND (e.session IS NULL OR e.session = s.session)
ORDER BY s.trial_id, s.second;

-- name: histograms
SELECT h.trial_id, h.kind, h.subject, h.histogram
FROM raw.histogram h
LEFT JOIN (SELECT trial_id, max(session) AS session FROM raw.trial GROUP BY trial_id) e ON e.trial_id = h.trial_id
WHERE h.kind IN ('HOP', 'ERROR', 'SEND_DELAY', 'FIRST_HALF', 'SECOND_HALF') AND (e.session IS NULL OR e.session = h.session);

-- name: measured
SELECT f.trial_id, f.metric, f.subject, f.value
FROM raw.figure f
LEFT JOIN (SELECT trial_id, max(session) AS session FROM raw.trial GROUP BY trial_id) e ON e.trial_id = f.trial_id
WHERE e.session IS NULL OR e.session = f.session;
