package dev.tollgate;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/**
 * Longest texts of a request. A server that gets much more than it reads closes the connection, and that would look like an outage, for which
 * onError may pass requests: the length of a text must not choose it.
 */
final class Bounds {
    private static final int PATH_BYTES_MAX = 8192;
    private static final int METHOD_BYTES_MAX = 64;
    private static final int VALUE_BYTES_MAX = 4096;
    private static final List<String> VALUES = List.of("client_key", "api_key", "user_id", "ip", "org", "tier", "namespace");

    private Bounds() {}

    /** Throws what the server would say about a text that is too long. */
    static void check(Request request) {
        if (request.get("endpoint") instanceof String endpoint) {
            var path = endpoint.substring(Math.max(0, endpoint.indexOf('/'))).split("[?#]", 2)[0];
            if (longer(path, PATH_BYTES_MAX) || longer(endpoint, PATH_BYTES_MAX + METHOD_BYTES_MAX)) {
                throw tooLong("path_too_long", "endpoint", "the path is longer than " + PATH_BYTES_MAX + " bytes");
            }
        }
        for (var name : VALUES) check(name, request.get(name));
        if (request.get("attributes") instanceof Map<?, ?> attributes) attributes.forEach((name, value) -> check(String.valueOf(name), value));
    }

    private static void check(String name, Object value) {
        if (value instanceof String text && longer(text, VALUE_BYTES_MAX)) {
            throw tooLong("value_too_long", name, "use at most " + VALUE_BYTES_MAX + " bytes");
        }
    }

    private static boolean longer(String text, int most) {
        // A unit of UTF-16 has at most three bytes.
        return text.length() > most || (text.length() > most / 3 && text.getBytes(StandardCharsets.UTF_8).length > most);
    }

    private static ApiException tooLong(String code, String field, String detail) {
        return new ApiException(400, Map.of("code", code, "field", field, "detail", detail));
    }
}
