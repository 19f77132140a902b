package dev.tollgate;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.HashMap;
import java.util.Map;
import java.util.function.LongSupplier;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The limiter of this process, for while the server is away. A bucket is dropped only when it equals an unused one; while there is none to drop,
 * new keys share a bucket, so that a flood of keys neither takes memory nor lets others pass for free. Keys are not kept, only keyed digests.
 */
final class FallbackLimiter {
    static final int KEYS_MAX = 10_000;
    /** Times are counted from a minute ago, so that no bucket's is the 0 of an unused one. */
    private static final long HEAD_START = 60_000_000_000L;

    private record Key(long high, long low) {}

    private static final Key OVERFLOW = new Key(0, 0);

    private final Limit limit;
    private final LongSupplier nanos;
    private final long start;
    private final SecretKeySpec salt;
    private final Map<Key, Long> fullAt = new HashMap<>();
    private long nextSweep;

    FallbackLimiter(Limit limit, LongSupplier nanos) {
        this.limit = limit;
        this.nanos = nanos;
        this.start = nanos.getAsLong();
        var secret = new byte[32];
        new SecureRandom().nextBytes(secret);
        this.salt = new SecretKeySpec(secret, "HmacSHA256");
    }

    /** Decides one request of a key, and records it unless it only peeks. */
    Limit.Outcome decide(String name, long cost, boolean peek) {
        var digest = digest(name);
        synchronized (this) {
            var now = Math.max(0, nanos.getAsLong() - start) + HEAD_START;
            var key = bucket(digest, now);
            var outcome = limit.take(fullAt.getOrDefault(key, 0L), now, cost);
            if (!peek && outcome.fullAt() > now) fullAt.put(key, outcome.fullAt());
            return outcome;
        }
    }

    private Key digest(String name) {
        try {
            var mac = Mac.getInstance("HmacSHA256");
            mac.init(salt);
            var bytes = ByteBuffer.wrap(mac.doFinal(name.getBytes(StandardCharsets.UTF_8)));
            return new Key(bytes.getLong(), bytes.getLong());
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("every JDK has HmacSHA256", e);
        }
    }

    private Key bucket(Key key, long now) {
        if (fullAt.size() < KEYS_MAX || fullAt.containsKey(key)) return key;
        if (now >= nextSweep) sweep(now);
        return fullAt.size() < KEYS_MAX ? key : OVERFLOW;
    }

    /** Drops what equals an unused bucket. Nothing can be dropped before the first of the others is full: no sweep for each request. */
    private void sweep(long now) {
        fullAt.values().removeIf(full -> full <= now);
        nextSweep = fullAt.values().stream().mapToLong(Long::longValue).min().orElse(now);
    }
}
