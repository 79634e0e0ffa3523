package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.Client;
import dev.rpcx.RPCXClient;
import dev.rpcx.RouteBy;
import dev.rpcx.codec.Codecs;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that the number that decides which instance gets a call is the same in every process. */
@Timeout(60)
public class RouteKeyTest {
    enum Colour {
        RED,
        GREEN,
        BLUE
    }

    record Bag(Colour colour, byte[] bytes, List<Colour> more) {}

    record Unordered(List<Map<String, String>> maps) {}

    @RPCXClient(remoteServerName = "routed")
    interface Routed {
        void text(@RouteBy String text);

        void number(@RouteBy long number);

        void colour(@RouteBy Colour colour);

        void bytes(@RouteBy byte[] bytes);

        void bag(String other, @RouteBy Bag bag);
    }

    @RPCXClient(remoteServerName = "routed")
    interface RoutedBySet {
        void set(@RouteBy Set<String> texts);
    }

    public record Collected(List<Collection<String>> texts) {}

    /** A caller may pass a set for this parameter. */
    @RPCXClient(remoteServerName = "routed")
    interface RoutedByCollection {
        void collection(@RouteBy Collection<String> texts);
    }

    @RPCXClient(remoteServerName = "routed")
    interface RoutedByCollectionInside {
        void collection(@RouteBy Collected texts);
    }

    @RPCXClient(remoteServerName = "routed")
    interface RoutedByMapInside {
        void set(@RouteBy Unordered texts);
    }

    private static int key(String method, Object... arguments) {
        for (java.lang.reflect.Method each : Routed.class.getDeclaredMethods()) {
            if (each.getName().equals(method)) {
                return java.util.Objects.requireNonNull(RouteKey.of(each, Codecs.standard(Routed.class)))
                        .of(arguments);
            }
        }
        throw new AssertionError(method);
    }

    private static List<Integer> keys() {
        List<Integer> keys = new ArrayList<>();
        keys.add(key("text", "a text"));
        keys.add(key("text", new Object[] {null}));
        keys.add(key("number", 47L << 32));
        for (Colour colour : Colour.values()) {
            keys.add(key("colour", colour));
        }
        keys.add(key("bytes", (Object) new byte[] {1, 2, 3}));
        keys.add(key("bag", "x", new Bag(Colour.BLUE, new byte[] {4}, List.of(Colour.RED, Colour.GREEN))));
        return keys;
    }

    /** Runs in a process of its own. */
    public static void main(String[] arguments) {
        // after this the identity hash codes of objects differ from those in the process of the test
        for (int i = 0; i < 1000; i++) {
            new Object().hashCode();
        }
        System.out.println("keys " + keys());
    }

    @Test
    void anArgumentHasTheSameKeyInAnotherProcess() throws Exception {
        Process other = new ProcessBuilder(
                        System.getProperty("java.home") + "/bin/java",
                        "-XX:TieredStopAtLevel=1",
                        "-cp",
                        System.getProperty("java.class.path"),
                        RouteKeyTest.class.getName())
                .redirectErrorStream(true)
                .start();
        String said = new String(other.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(other.waitFor()).as(said).isZero();
        assertThat(said).contains("keys " + keys());
        assertThat(keys()).doesNotHaveDuplicates().doesNotContain(0);
    }

    @Test
    void whatHasNoOrderIsRefused() {
        try (Client client = Client.standard()) {
            assertThatThrownBy(() -> client.create(RoutedBySet.class, "127.0.0.1", 9))
                    .hasMessageContaining("Set, a Map");
            assertThatThrownBy(() -> client.create(RoutedByMapInside.class, "127.0.0.1", 9))
                    .hasMessageContaining("Set, a Map");
            assertThatThrownBy(() -> client.create(RoutedByCollection.class, "127.0.0.1", 9))
                    .hasMessageContaining("Collection");
            assertThatThrownBy(() -> client.create(RoutedByCollectionInside.class, "127.0.0.1", 9))
                    .hasMessageContaining("Collection");
        }
    }
}
