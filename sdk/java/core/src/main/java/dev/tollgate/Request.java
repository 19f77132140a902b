package dev.tollgate;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What is asked about: the fields of the HTTP API. One must name the client or the endpoint. */
public final class Request {
    /** The most particular identity first. */
    private static final List<String> IDENTITIES = List.of("api_key", "user_id", "client_key", "org", "ip");

    private final Map<String, Object> members;

    private Request(Map<String, Object> members) {
        this.members = members;
    }

    /** A request without fields. */
    public static Request of() {
        return new Request(Map.of());
    }

    /** A request with the members of the API's JSON. */
    public static Request of(Map<String, Object> members) {
        return new Request(new LinkedHashMap<>(members));
    }

    public Request clientKey(String value) {
        return with("client_key", value);
    }

    public Request apiKey(String value) {
        return with("api_key", value);
    }

    public Request userId(String value) {
        return with("user_id", value);
    }

    public Request ip(String value) {
        return with("ip", value);
    }

    public Request org(String value) {
        return with("org", value);
    }

    public Request tier(String value) {
        return with("tier", value);
    }

    /** {@code METHOD /path}, or {@code /path} for any method. */
    public Request endpoint(String value) {
        return with("endpoint", value);
    }

    /** 1 if not said; 0 only reads. */
    public Request cost(long units) {
        return with("cost", units);
    }

    /** Amounts of meters, such as tokens. */
    public Request costs(Map<String, Long> costs) {
        return with("costs", costs == null || costs.isEmpty() ? null : Map.copyOf(costs));
    }

    public Request peek(boolean peek) {
        return with("peek", peek ? true : null);
    }

    public Request attributes(Map<String, String> attributes) {
        return with("attributes", attributes == null || attributes.isEmpty() ? null : Map.copyOf(attributes));
    }

    public Request namespace(String value) {
        return with("namespace", value);
    }

    /** The value of a field, null if it is not there. */
    public Object get(String name) {
        return members.get(name);
    }

    Map<String, Object> members() {
        return members;
    }

    /** A value of null or nothing is a field that is not there. */
    private Request with(String name, Object value) {
        var members = new LinkedHashMap<>(this.members);
        members.remove(name);
        if (value != null && !"".equals(value)) members.put(name, value);
        return new Request(members);
    }

    /** The key of the fallback limiter. */
    String bucket() {
        for (var name : IDENTITIES) {
            var value = members.get(name);
            if (value != null) return name + ":" + value;
        }
        return "";
    }

    long units() {
        if (members.get("cost") instanceof Number cost) return cost.longValue();
        if (members.get("costs") instanceof Map<?, ?> costs && costs.get("requests") instanceof Number units) return units.longValue();
        return 1;
    }
}
