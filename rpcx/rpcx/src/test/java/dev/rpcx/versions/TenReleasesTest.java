package dev.rpcx.versions;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Client;
import dev.rpcx.LongForm;
import dev.rpcx.RPCXException;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.codec.Codecs;
import dev.rpcx.codec.CompiledSources;
import dev.rpcx.codec.RandomValues;
import dev.rpcx.internal.schema.EnumType;
import dev.rpcx.internal.schema.FieldType;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Shape;
import dev.rpcx.tool.SchemaTool;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests the life of a service of ten releases, of which each changes its messages in another way. Each release has
 * classes and a lock of its own, which {@code rpcx lock} has made of that of the release before. Clients and servers of
 * all releases call each other, over sockets. What both know of a value arrives as it was sent, or the call is refused
 * and not executed.
 */
@Timeout(240)
class TenReleasesTest {
    /**
     * A release of the service.
     *
     * @param change what this release changes
     * @param order components of {@code Order}
     * @param types source of further types
     * @param find parameters of {@code find}, and what it returns
     * @param place parameters of {@code place}
     * @param answers options with which {@code rpcx lock} is called
     */
    private record Release(
            String change, String order, String types, String[] find, String place, List<String> answers) {
        String source() {
            return """
                    package shop;

                    import dev.rpcx.*;
                    import dev.rpcx.schema.*;
                    import java.util.*;

                    public class Shop {
                        public record Note(String text) {}

                        public record Order(%s) {}

                        %s

                        @RPCXServer("shop")
                        public static class Service {
                            public static volatile Object seen;
                            public static volatile Object reply;

                            @Method
                            public Order echo(Order order) {
                                seen = order;
                                return (Order) reply;
                            }

                            @Method
                            public String find(%s) {
                                return %s;
                            }

                            @Method
                            public String place(%s) {
                                seen = order;
                                return "placed";
                            }
                        }

                        @RPCXClient(remoteServerName = "shop")
                        public interface Calls {
                            Order echo(Order order);

                            String find(%s);

                            String place(%s);
                        }
                    }
                    """.formatted(order, types, find[0], find[1], place, find[0], place);
        }
    }

    private static final String[] FIND = {"String id", "\"found \" + id"};
    private static final String[] FIND_SOME = {"String id, int max", "\"found \" + id + \" of \" + max"};

    private static final String STATUS = "public enum Status { @Unknown OTHER, NEW, PAID %s }";
    private static final String PAYMENT = """
            public sealed interface Payment permits Cash, Unheard %s {}
            public record Cash(long cents) implements Payment {}
            @Unknown public record Unheard() implements Payment {}
            """;
    private static final String WITH_CARD =
            PAYMENT.formatted(", Card") + "public record Card(String number, Status status) implements Payment {}";

    private static final String NAMED = "String id, List<String> tags, String firstName, Note note, String lastName";

    private static final List<Release> RELEASES = List.of(
            new Release("the first", "String id, int count, String name", "", FIND, "Order order", List.of()),
            new Release(
                    "adds components, one of them in between",
                    "String id, List<String> tags, int count, String name, Note note",
                    "",
                    FIND,
                    "Order order",
                    List.of()),
            new Release(
                    "removes a component",
                    "String id, List<String> tags, String name, Note note",
                    "",
                    FIND,
                    "Order order",
                    List.of()),
            new Release(
                    "renames a component",
                    "String id, List<String> tags, String customer, Note note",
                    "",
                    FIND,
                    "Order order",
                    List.of("--rename", "name=customer")),
            new Release(
                    "splits a component into two", NAMED, "", FIND, "Order order", List.of("--removed", "customer")),
            new Release(
                    "adds an enum", NAMED + ", Status status", STATUS.formatted(""), FIND, "Order order", List.of()),
            new Release(
                    "adds a constant and a sealed type",
                    "Payment payment, " + NAMED + ", Status status",
                    STATUS.formatted(", SHIPPED") + PAYMENT.formatted(""),
                    FIND,
                    "Order order",
                    List.of()),
            new Release(
                    "adds a case",
                    "Payment payment, " + NAMED + ", Status status",
                    STATUS.formatted(", SHIPPED") + WITH_CARD,
                    FIND,
                    "Order order",
                    List.of()),
            new Release(
                    "lets a component be absent",
                    "Payment payment, " + NAMED.replace("Note note", "Optional<Note> note") + ", Status status",
                    STATUS.formatted(", SHIPPED") + WITH_CARD,
                    FIND,
                    "Order order",
                    List.of()),
            new Release(
                    "gives two methods a second parameter",
                    "Payment payment, " + NAMED.replace("Note note", "Optional<Note> note") + ", Status status",
                    STATUS.formatted(", SHIPPED") + WITH_CARD,
                    FIND_SOME,
                    "Order order, String by",
                    List.of()));

    /** A release whose classes and lock are there. */
    private record Built(int number, Class<?> service, Class<?> calls, MessageType order) {
        Object call(Object proxy, String name, @Nullable Object... arguments) throws Throwable {
            Method method = Arrays.stream(calls.getMethods())
                    .filter(each -> each.getName().equals(name))
                    .findFirst()
                    .orElseThrow();
            try {
                return method.invoke(proxy, Arrays.copyOf(arguments, method.getParameterCount()));
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        }

        @Nullable
        Object get(String field) throws ReflectiveOperationException {
            return service.getField(field).get(null);
        }

        void set(String field, @Nullable Object value) throws ReflectiveOperationException {
            service.getField(field).set(null, value);
        }
    }

    @TempDir
    Path folder;

    private Built build(int number, Release release, @Nullable Path before) throws Exception {
        Path root = folder.resolve("release" + number);
        Path lock = lock(root);
        Files.createDirectories(lock.getParent());
        if (before != null) {
            Files.copy(before, lock);
        }
        ClassLoader beside =
                new URLClassLoader(new URL[] {root.toUri().toURL()}, getClass().getClassLoader());
        ClassLoader loader = CompiledSources.loader(Map.of("shop.Shop", release.source()), beside);
        List<String> command = new ArrayList<>(List.of("lock"));
        command.addAll(release.answers);
        command.addAll(List.of(lock.toString(), "shop.Shop$Service"));
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        PrintStream out = new PrintStream(said, true, StandardCharsets.UTF_8);
        int status = new SchemaTool(out, out, loader).run(command);
        String told = said.toString(StandardCharsets.UTF_8);
        if (number < RELEASES.size()) {
            assertThat(status)
                    .as("release %d, which %s: %s", number, release.change, told)
                    .isZero();
        } else {
            assertThat(status).as(told).isEqualTo(3);
            assertThat(told.lines().filter(line -> !line.startsWith("note: ")))
                    .hasSize(2)
                    .first()
                    .asString()
                    .startsWith("BOTH shop/place.request: was a message of its own, is a field of one");
        }
        Class<?> service = loader.loadClass("shop.Shop$Service");
        Class<?> calls = loader.loadClass("shop.Shop$Calls");
        Method echo = Arrays.stream(service.getMethods())
                .filter(method -> method.getName().equals("echo"))
                .findFirst()
                .orElseThrow();
        return new Built(
                number, service, calls, Codecs.standard(service).schema().parameters(echo));
    }

    private static Path lock(Path root) {
        return root.resolve("META-INF").resolve("rpcx").resolve("schema.lock");
    }

    @Test
    void clientsAndServersOfAllReleasesReadEachOtherOrRefuse() throws Throwable {
        List<Built> all = new ArrayList<>();
        Path before = null;
        for (Release release : RELEASES) {
            all.add(build(all.size() + 1, release, before));
            before = lock(folder.resolve("release" + all.size()));
        }
        List<Server> servers = new ArrayList<>();
        int refused = 0;
        try {
            for (Built server : all) {
                servers.add(Server.builder(RegistryServer.registry(
                                server.service.getDeclaredConstructor().newInstance()))
                        .host("127.0.0.1")
                        .build()
                        .start());
            }
            for (Built client : all) {
                try (Client calling = Client.standard()) {
                    for (Built server : all) {
                        Object proxy = calling.create(
                                client.calls,
                                "127.0.0.1",
                                servers.get(server.number - 1).port());
                        refused += pair(client, server, proxy);
                    }
                }
            }
        } finally {
            servers.forEach(server -> server.stop(Duration.ofMillis(200)));
        }
        assertThat(refused).as("refused calls of place").isEqualTo(18);
        LongForm.figure(
                11,
                "10 releases of a service (%s), 100 pairs: values equal in all, and %d pairs refuse one method",
                String.join("; ", RELEASES.stream().map(Release::change).toList()),
                refused);
    }

    /** Calls each method of a server. Returns how many are refused. */
    private static int pair(Built client, Built server, Object proxy) throws Throwable {
        String where = "client of release " + client.number + ", server of release " + server.number;
        RandomValues values = new RandomValues(100L * client.number + server.number);
        for (int i = 0; i < 20; i++) {
            Object sent = values.message(client.order, 0);
            Object reply = values.message(server.order, 0);
            server.set("reply", reply);
            Object read = client.call(proxy, "echo", sent);
            assertSame(where + ", request", client.order, sent, server.order, server.get("seen"));
            assertSame(where + ", reply", server.order, reply, client.order, read);
        }
        int last = RELEASES.size();
        assertThat(client.call(proxy, "find", "a", 7))
                .as(where)
                .isEqualTo(server.number < last ? "found a" : client.number < last ? "found a of 0" : "found a of 7");
        server.set("seen", null);
        Object order = values.message(client.order, 0);
        if ((client.number == last) == (server.number == last)) {
            assertThat(client.call(proxy, "place", order, "Bob")).as(where).isEqualTo("placed");
            assertSame(where + ", place", client.order, order, server.order, server.get("seen"));
            return 0;
        }
        try {
            client.call(proxy, "place", order, "Bob");
        } catch (RPCXException e) {
            assertThat(e.code()).as(where).isEqualTo(RPCXException.Code.INVALID);
            assertThat(e.executed()).as(where).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
            assertThat(e).as(where).hasMessageStartingWith("shop/place at ").hasMessageContaining("parameter 1 is");
            assertThat(server.get("seen")).as(where).isNull();
            return 1;
        }
        throw new AssertionError(where + ": place has not been refused");
    }

    // ---- whether what both releases know of a value is the same, by the numbers of members

    private static void assertSame(
            String where, MessageType from, @Nullable Object written, MessageType to, @Nullable Object read)
            throws ReflectiveOperationException {
        assertThat(isSame(from, written, to, read))
                .as("%s: %s is read as %s", where, written, read)
                .isTrue();
    }

    private static boolean isSame(Shape from, @Nullable Object written, Shape to, @Nullable Object read)
            throws ReflectiveOperationException {
        if (written == null || read == null) {
            return written == read;
        }
        if (from instanceof EnumType one && to instanceof EnumType other) {
            int number = one.numbers().get(((Enum<?>) written).ordinal());
            int there = other.numbers().indexOf(number);
            return read == (there < 0 ? other.unknown() : other.constants()[there]);
        }
        if (!(from instanceof MessageType one) || !(to instanceof MessageType other)) {
            return written.equals(read);
        }
        if (one.kind() != MessageType.Kind.ONEOF) {
            return areSameComponents(one, written, other, read);
        }
        for (FieldType each : one.fields()) {
            FieldType there = each.javaClass() == written.getClass() ? at(other, each.number()) : null;
            if (there != null) {
                return read.getClass() == there.javaClass() && isSame(each.shape(), written, there.shape(), read);
            }
        }
        return read == other.unknownCase();
    }

    private static boolean areSameComponents(MessageType from, Object written, MessageType to, Object read)
            throws ReflectiveOperationException {
        for (int i = 0; i < from.fields().size(); i++) {
            FieldType field = from.fields().get(i);
            FieldType there = at(to, field.number());
            if (there == null) {
                continue;
            }
            Object one = content(from.getters().get(i), written);
            Object other = content(to.getters().get(to.fields().indexOf(there)), read);
            boolean isSame = field.holder() == FieldType.Holder.LIST
                    ? one.equals(other)
                    : isSame(field.shape(), one, there.shape(), other);
            if (!isSame) {
                return false;
            }
        }
        return true;
    }

    private static @Nullable FieldType at(MessageType type, int number) {
        return type.fields().stream()
                .filter(field -> field.number() == number)
                .findFirst()
                .orElse(null);
    }

    private static @Nullable Object content(Method getter, Object from) throws ReflectiveOperationException {
        Object value = getter.invoke(from);
        return value instanceof Optional<?> optional ? optional.orElse(null) : value;
    }
}
