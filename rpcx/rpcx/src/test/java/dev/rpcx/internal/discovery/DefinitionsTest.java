package dev.rpcx.internal.discovery;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.CallLog;
import dev.rpcx.Client;
import dev.rpcx.Endpoints;
import dev.rpcx.Interceptor;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXFuture;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.Tokens;
import dev.rpcx.schema.SchemaException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests services, client interfaces and settings that are not valid. Each of them is refused at the start, with a text
 * that says what is wrong and where.
 */
@Timeout(60)
class DefinitionsTest {
    @RPCXServer("s")
    static final class OfStatic {
        @Method
        static String odd() {
            return "";
        }
    }

    @RPCXServer("s")
    static final class Throwing {
        Throwing() {
            throw new IllegalStateException("no database");
        }

        @Method
        void nothing() {}
    }

    @RPCXServer("s")
    abstract static class Abstract {
        @Method
        abstract void nothing();
    }

    @RPCXServer("s")
    interface Interface {
        @Method
        void nothing();
    }

    @RPCXServer("s")
    static final class WithParameters {
        WithParameters(int number) {
            assertThat(number).isZero();
        }

        @Method
        void nothing() {}
    }

    @RPCXServer("s")
    static final class NegativeTime {
        @Method(timeoutMillis = -5)
        void nothing() {}
    }

    @RPCXServer("s")
    static final class NegativeHedge {
        @Method(hedgeMillis = -1)
        void nothing() {}
    }

    @RPCXServer("s")
    static final class Generic {
        @Method
        <T> T same(T value) {
            return value;
        }
    }

    @RPCXServer("s")
    static final class GenericStream {
        @Method
        <T> int count(Flow.Publisher<T> items) {
            return items.hashCode();
        }
    }

    private static void assertRefused(Class<?> service, String text) {
        assertThatThrownBy(() -> Server.builder(RegistryServer.registry(service))
                        .inProcess()
                        .build())
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(text);
    }

    @Test
    void aServiceThatCannotBeSaysWhy() {
        assertRefused(OfStatic.class, "OfStatic.odd(): @Method on a static method (expected: ");
        assertRefused(
                Throwing.class, "Throwing: its constructor has failed: java.lang.IllegalStateException: no database");
        assertThatThrownBy(() -> RegistryServer.registry(Throwing.class))
                .hasCauseInstanceOf(IllegalStateException.class);
        assertRefused(Abstract.class, "Abstract: cannot be made, since it is abstract (expected: ");
        assertRefused(Interface.class, "Interface: cannot be made, since it is an interface (expected: ");
        assertRefused(
                WithParameters.class,
                "WithParameters: cannot be made (expected: a constructor without parameters, or an object)");
        assertRefused(String.class, "java.lang.String (expected: a class with @RPCXServer)");
        assertRefused(NegativeTime.class, "NegativeTime.nothing(): timeoutMillis -5 (expected: 0 or more)");
        assertRefused(NegativeHedge.class, "NegativeHedge.nothing(): hedgeMillis -1 (expected: 0 or more)");
    }

    @Test
    void aTypeThatIsNotKnownNamesClassAndMethod() {
        assertRefused(Generic.class, "DefinitionsTest$Generic.same: what T stands for is not known here");
        assertRefused(GenericStream.class, "DefinitionsTest$GenericStream.count: what T stands for is not known here");
    }

    @RPCXClient(remoteServerName = "s")
    interface GenericClient {
        <T> int count(Flow.Publisher<T> items);
    }

    @RPCXClient(remoteServerName = "s")
    interface GenericClassicClient {
        <T> int same(T value);
    }

    @RPCXClient(remoteServerName = "s")
    interface Overloads {
        int find(int number);

        int find(String name);
    }

    @RPCXClient(remoteServerName = "s")
    interface OneNameForTwo {
        int find(int number);

        @Method("find")
        CompletionStage<Integer> findLater(List<String> names);
    }

    interface Greets {
        String hello(String name);
    }

    interface GreetsToo {
        String hello(String name);
    }

    /** Its callers see one method, and the other overload has a name of its own. */
    @RPCXClient(remoteServerName = "s")
    interface Inherits extends Greets, GreetsToo {
        @Method("helloByNumber")
        String hello(int number);
    }

    @RPCXServer("s")
    static final class OverloadedService {
        @Method
        int find(int number) {
            return number;
        }

        @Method
        int find(String name) {
            return name.length();
        }
    }

    @RPCXClient(remoteServerName = "s")
    interface TimeBelowZero {
        @Method(timeoutMillis = -5)
        void nothing();
    }

    @RPCXClient(remoteServerName = "s")
    interface HedgeBelowZero {
        @Method(idempotent = true, hedgeMillis = -1)
        int something();
    }

    @RPCXClient(remoteServerName = "s")
    interface LateHedge {
        @Method(idempotent = true, hedgeMillis = 100_000)
        int something();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aMethodThatCannotBeCalledIsAnIllegalArgument(boolean isClassic) {
        Client.Builder builder = Client.builder().inProcess().callTimeout(Duration.ofSeconds(100));
        try (Client client = (isClassic ? builder.classic() : builder).build()) {
            if (!isClassic) {
                assertThatThrownBy(() -> client.create(GenericClient.class, "localhost", 1))
                        .isInstanceOf(SchemaException.class)
                        .isInstanceOf(IllegalArgumentException.class)
                        .hasMessageContaining("DefinitionsTest$GenericClient.count: what T stands for");
            }
            assertThatThrownBy(() -> client.create(GenericClassicClient.class, "localhost", 1))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("DefinitionsTest$GenericClassicClient.same: what T stands for");
            assertThatThrownBy(() -> client.create(TimeBelowZero.class, "localhost", 1))
                    .hasMessageContaining("TimeBelowZero.nothing(): timeoutMillis -5 (expected: 0 or more)");
            assertThatThrownBy(() -> client.create(HedgeBelowZero.class, "localhost", 1))
                    .hasMessageContaining("HedgeBelowZero.something(): hedgeMillis -1 (expected: 0 or more)");
            assertThatThrownBy(() -> client.create(LateHedge.class, "localhost", 1))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining(
                            "LateHedge.something(): hedgeMillis 100000 (expected: less than the call's time, PT1M40S)");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void twoMethodsOfOnePublishedNameAreRefusedOnBothSides(boolean isClassic) {
        Client.Builder builder = Client.builder().inProcess();
        try (Client client = (isClassic ? builder.classic() : builder).build()) {
            for (Class<?> type : List.of(Overloads.class, OneNameForTwo.class)) {
                assertThatThrownBy(() -> client.create(type, "localhost", 1))
                        .isInstanceOf(IllegalArgumentException.class)
                        .hasMessageContaining(type.getName()
                                + ": find is published twice (expected: names that differ, or the same"
                                + " parameters by the same names)");
            }
            assertThat(client.create(Inherits.class, "localhost", 1)).isNotNull();
        }
        assertRefused(
                OverloadedService.class, "OverloadedService: find is published twice (expected: names that differ)");
    }

    @Test
    void aWatchThatIsNoneIsRefusedWhereItBegins() {
        Endpoints none = listener -> null;
        try (Client client = Client.builder().inProcess().build()) {
            assertThatThrownBy(() -> client.create(LateHedgeFree.class, none))
                    .isInstanceOf(NullPointerException.class)
                    .hasMessageMatching("watch of .*DefinitionsTest.*: null \\(expected: .*");
        }
        assertThat(SharedWatch.count()).isZero();
    }

    @Test
    void aRegistryThatTellsANullHearsSo() {
        List<Throwable> heard = new ArrayList<>();
        Endpoints odd = listener -> {
            for (Runnable telling : List.<Runnable>of(
                    () -> listener.found(null),
                    () -> listener.found(Collections.singletonList(null)),
                    () -> listener.failed(null))) {
                try {
                    telling.run();
                } catch (NullPointerException e) {
                    heard.add(e);
                }
            }
            return () -> {};
        };
        try (Client client = Client.builder().inProcess().build()) {
            client.create(LateHedgeFree.class, odd);
        }
        assertThat(heard)
                .extracting(Throwable::getMessage)
                .containsExactly(
                        "found: null (expected: instances, or an empty list)",
                        "found[0]: null (expected: instances, or an empty list)",
                        "failed: null (expected: why the registry could not be asked)");
    }

    @RPCXClient(remoteServerName = "s")
    interface LateHedgeFree {
        int something();
    }

    @Test
    void aClientSignsOnce() {
        byte[] secret = new byte[16];
        for (Interceptor second : new Interceptor[] {
            Tokens.signing("bob", secret), Tokens.forwarding("bob", secret), Tokens.forwardingOnly("bob", secret)
        }) {
            Client.Builder twice = Client.builder()
                    .interceptor(Tokens.signing("alice", secret))
                    .interceptor(second);
            assertThatThrownBy(twice::build)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("Tokens.signing or forwarding: 2 interceptors (expected: one");
        }
    }

    @Test
    void timesNameTheirOwnRange() {
        assertThatThrownBy(() -> Client.builder().keepAlive(Duration.ofHours(2)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("keepAlive: PT2H (expected: 100 ms to 1 h)");
        for (Duration time : new Duration[] {Duration.ofSeconds(Long.MAX_VALUE), Duration.ofMillis(-1)}) {
            assertThatThrownBy(() -> CallLog.ofClient().slowerThan(time))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("slowerThan: " + time + " (expected: 0 to 365 days)");
        }
    }

    @RPCXServer("s")
    static final class Other {
        @Method
        int other() {
            return 1;
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aMethodThatIsNotThereIsNamed(boolean isClassic) {
        try (Server server = Server.builder(RegistryServer.registry(new Other()))
                        .inProcess()
                        .classic(true)
                        .build()
                        .start();
                Client client = (isClassic ? Client.builder().classic() : Client.builder())
                        .inProcess()
                        .build()) {
            Missing missing = client.create(Missing.class, "localhost", server.port());
            String text = "localhost:" + server.port() + ": s/something: no such service or method";
            assertThatThrownBy(missing::something)
                    .isInstanceOfSatisfying(RPCXException.class, e -> {
                        assertThat(e.code()).isEqualTo(RPCXException.Code.NOT_FOUND);
                        assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                    })
                    .hasMessage(text);
            assertThatThrownBy(() -> missing.later().join())
                    .hasCauseInstanceOf(RPCXException.class)
                    .hasRootCauseMessage(text);
        }
    }

    @RPCXClient(remoteServerName = "s")
    interface Missing {
        int something();

        @Method("something")
        java.util.concurrent.CompletableFuture<Integer> later();
    }

    @RPCXClient(remoteServerName = "s")
    interface OneInThreeForms {
        String find(List<String> names);

        @Method("find")
        CompletionStage<String> findLater(List<String> names);

        @Method("find")
        RPCXFuture<String> findCancellably(List<String> names);
    }

    static final class DetachableStage<T> extends CompletableFuture<T> {}

    @RPCXClient(remoteServerName = "s")
    interface OfDetachableStage {
        DetachableStage<String> find(String name);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aClientsInterfaceThatCannotBeCalledIsRefusedBeforeACall(boolean isClassic) {
        Client.Builder builder = Client.builder();
        try (Client client = (isClassic ? builder.classic() : builder.inProcess()).build()) {
            assertThatThrownBy(() -> client.create(OfDetachableStage.class, "here", 1))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("OfDetachableStage.find")
                    .hasMessageContaining("DetachableStage")
                    .hasMessageContaining("(expected: CompletionStage, CompletableFuture or RPCXFuture)");
            assertThat(client.create(OneInThreeForms.class, "here", 1)).isNotNull();
        }
    }
}
