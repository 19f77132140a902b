package dev.tollgate;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON as maps, lists, texts, numbers, booleans and null: as much as the calls of Tollgate need, so that the client has no dependency.
 * What is nested deeper than {@value #DEPTH_MAX} is refused.
 */
public final class Json {
    private static final int DEPTH_MAX = 64;

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Reads one value. */
    public static Object read(String text) {
        var json = new Json(text);
        var value = json.value(0);
        json.space();
        if (json.at != text.length()) throw json.mistake("nothing may follow the value");
        return value;
    }

    /** Reads an object. */
    @SuppressWarnings("unchecked")
    public static Map<String, Object> object(String text) {
        if (read(text) instanceof Map<?, ?> members) return (Map<String, Object>) members;
        throw new IllegalArgumentException("not a JSON object");
    }

    /** Writes a value, without spaces. */
    public static String write(Object value) {
        var out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof Map<?, ?> members) {
            var comma = "{";
            for (var member : members.entrySet()) {
                out.append(comma);
                quote(String.valueOf(member.getKey()), out);
                out.append(':');
                write(member.getValue(), out);
                comma = ",";
            }
            out.append(members.isEmpty() ? "{}" : "}");
        } else if (value instanceof List<?> items) {
            var comma = "[";
            for (var item : items) {
                out.append(comma);
                write(item, out);
                comma = ",";
            }
            out.append(items.isEmpty() ? "[]" : "]");
        } else if (value == null || value instanceof Number || value instanceof Boolean) {
            out.append(value);
        } else {
            quote(value.toString(), out);
        }
    }

    private static void quote(String text, StringBuilder out) {
        out.append('"');
        for (int index = 0; index < text.length(); index++) {
            var c = text.charAt(index);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || Character.isSurrogate(c)) {
                // A lone half of a pair is no Unicode; escaped, a pair stays one.
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }

    private Object value(int depth) {
        if (depth > DEPTH_MAX) throw mistake("nested too deeply");
        space();
        switch (peek()) {
            case '{':
                return members(depth);
            case '[':
                return items(depth);
            case '"':
                return string();
            case 't':
                return word("true", true);
            case 'f':
                return word("false", false);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> members(int depth) {
        var members = new LinkedHashMap<String, Object>();
        at++;
        space();
        if (skip('}')) return members;
        do {
            space();
            if (peek() != '"') throw mistake("a name is expected");
            var name = string();
            space();
            if (!skip(':')) throw mistake("a colon is expected");
            members.put(name, value(depth + 1));
            space();
        } while (skip(','));
        if (!skip('}')) throw mistake("a brace is expected");
        return members;
    }

    private List<Object> items(int depth) {
        var items = new ArrayList<Object>();
        at++;
        space();
        if (skip(']')) return items;
        do {
            items.add(value(depth + 1));
            space();
        } while (skip(','));
        if (!skip(']')) throw mistake("a bracket is expected");
        return items;
    }

    private String string() {
        var out = new StringBuilder();
        at++;
        while (true) {
            var c = next();
            if (c == '"') return out.toString();
            if (c < ' ') throw mistake("a control character");
            out.append(c == '\\' ? escaped() : c);
        }
    }

    private char escaped() {
        var c = next();
        switch (c) {
            case 'n':
                return '\n';
            case 't':
                return '\t';
            case 'r':
                return '\r';
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'u':
                if (at + 4 > text.length()) throw mistake("an escape is cut off");
                at += 4;
                try {
                    return (char) Integer.parseInt(text.substring(at - 4, at), 16);
                } catch (NumberFormatException e) {
                    throw mistake("an escape that is none");
                }
            case '"', '\\', '/':
                return c;
            default:
                throw mistake("an escape that is none");
        }
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) throw mistake("a value is expected");
        at += word.length();
        return value;
    }

    private Object number() {
        var start = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) at++;
        var digits = text.substring(start, at);
        try {
            if (digits.matches("-?[0-9]{1,18}")) return Long.valueOf(digits);
            return new BigDecimal(digits);
        } catch (NumberFormatException e) {
            throw mistake("a value is expected");
        }
    }

    private void space() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
    }

    private boolean skip(char c) {
        if (at >= text.length() || text.charAt(at) != c) return false;
        at++;
        return true;
    }

    private char peek() {
        return at < text.length() ? text.charAt(at) : '\0';
    }

    private char next() {
        if (at >= text.length()) throw mistake("the text ends within a value");
        return text.charAt(at++);
    }

    private IllegalArgumentException mistake(String what) {
        return new IllegalArgumentException("not JSON: " + what + " at character " + at);
    }
}
