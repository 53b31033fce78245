-- What befell holds, in order.
INSERT INTO hold_events (hold_id, at_ms, event, until_ms, barren, job_id, fence, n, "by", reason)
SELECT hold_id, at_ms, event, until_ms, barren, job_id, fence, n, "by", reason
FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::uuid[], $7::bigint[], $8::bigint[],
            $9::text[], $10::text[])
    WITH ORDINALITY AS e (hold_id, at_ms, event, until_ms, barren, job_id, fence, n, "by", reason, place)
ORDER BY place
