package dev.tollgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What the server sends is read strictly: anything may pretend to be it. */
class JsonTest {
    @Test
    void readsWhatTheServerWrites() {
        var read = Json.object("{\"allowed\":true,\"limit\":18446744073709551615,\"rule\":null,\"cost\":-7,\"rules\":[{\"a\":1.5}]}");
        assertEquals(Boolean.TRUE, read.get("allowed"));
        assertEquals(new BigDecimal("18446744073709551615"), read.get("limit"));
        assertEquals(-7L, read.get("cost"));
        assertEquals(List.of(Map.of("a", new BigDecimal("1.5"))), read.get("rules"));
        assertEquals(true, read.containsKey("rule"));
    }

    @Test
    void textsKeepWhatTheyHave() {
        for (var text : List.of("", "a\"b\\c", "\n\t\r\u0000", "Ünïcödé", "\uD83D\uDE00", "</script>")) {
            assertEquals(text, Json.read(Json.write(text)), text);
        }
        assertEquals("\"\\ud83d\"", Json.write("\uD83D"), "half of a pair is no Unicode");
    }

    @Test
    void refusesWhatIsNone() {
        for (var wrong : List.of("", "{", "[1,]", "{\"a\"}", "{\"a\":}", "tru", "1 2", "\"a", "\"\\x\"", "\"\\u12\"", "\"\n\"", "-", "1e", "NaN")) {
            assertThrows(IllegalArgumentException.class, () -> Json.read(wrong), wrong);
        }
        assertThrows(IllegalArgumentException.class, () -> Json.object("[]"));
        assertThrows(IllegalArgumentException.class, () -> Json.read("[".repeat(100_000)), "nested too deeply");
    }
}
