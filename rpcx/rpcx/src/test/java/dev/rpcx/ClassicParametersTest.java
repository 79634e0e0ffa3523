package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.codec.Codecs;
import dev.rpcx.internal.call.ClassicParameter;
import dev.rpcx.internal.wire.ClassicWire;
import dev.rpcx.schema.Field;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/**
 * Tests how the classic wire carries parameters. It carries the same values as the native wire, and a request is
 * refused if the numbers of its parameters are not those of the method.
 */
class ClassicParametersTest {
    record Person(@Field(1) String name) {}

    @RPCXServer("parameters")
    public static final class Service {
        @Method
        public String transfer(@Field(1) String from, @Field(2) String to, @Field(3) int amount) {
            return from + " to " + to + ": " + amount;
        }

        @Method
        public String person(@Nullable Person person) {
            return person == null ? "nobody" : person.name();
        }

        /** In an earlier version, the first parameter had the number 1. */
        @Method
        public String changed(@Field(2) String text, @Field(7) boolean flag) {
            return text + flag;
        }

        @Method
        public String several(@Nullable Person person, boolean flag) {
            return (person == null ? "nobody" : person.name()) + flag;
        }

        @Method
        public String list(@Nullable List<String> list) {
            return String.valueOf(list);
        }

        @Method
        public String box(Integer box, @Nullable String text) {
            return box + " " + text;
        }
    }

    /** Declares the parameters in another order, as a later version may. Their numbers say which is which. */
    @RPCXClient(remoteServerName = "parameters")
    interface Calls {
        String transfer(@Field(3) int amount, @Field(2) String to, @Field(1) String from);

        String person(@Nullable Person person);

        String changed(@Field(7) boolean flag, @Field(2) String text);

        String several(Person person, boolean flag);

        String list(@Nullable List<String> list);

        String box(@Nullable Integer box, @Nullable String text);
    }

    /** The interface is of an older version, which had the first of these parameters and not the flag. */
    @RPCXClient(remoteServerName = "parameters")
    interface OldCalls {
        String changed(@Field(1) String gone, @Field(2) String text);
    }

    @Test
    void parametersOfOtherNumbersAreRefused() throws Exception {
        Server server = Server.builder(RegistryServer.registry(new Service()))
                .host("127.0.0.1")
                .classic(true)
                .build()
                .start();
        try (Client client = Client.builder().classic().build()) {
            OldCalls calls = client.create(OldCalls.class, "127.0.0.1", server.port());
            assertThatThrownBy(() -> calls.changed("a", "b")).isInstanceOfSatisfying(RPCXException.class, e -> {
                assertThat(e.code()).isEqualTo(RPCXException.Code.INVALID);
                assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                assertThat(e).hasMessageContaining("numbers [1, 2] (expected: [2, 7])");
            });
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    @Test
    void aMessageOfItsOwnHasNoNumberAndMayTellAny() throws Exception {
        java.lang.reflect.Method method = Whole.class.getMethod("hello", Person.class);
        List<ClassicParameter> whole = ClassicParameter.of(method, Codecs.standard(Whole.class));
        for (int told : new int[] {1, 7, -1}) {
            assertThat(ClassicParameter.have(whole, List.of(told))).isTrue();
        }
        List<Integer> numbers = ClassicParameter.numbers(whole);
        ByteBuf request = ClassicWire.request(1, "s", "m", List.of("Person"), numbers, List.of(new byte[] {0x0a, 0}));
        assertThat(ByteBufUtil.hexDump(request)).endsWith("12020a00");
    }

    interface Whole {
        String hello(@Field(7) Person person);
    }

    @Test
    void whatIsMadeForAParameterIsKeptOnce() throws Exception {
        Codecs codecs = Codecs.standard(Service.class);
        java.lang.reflect.Method method = Service.class.getMethod("box", Integer.class, String.class);
        List<ClassicParameter> once = ClassicParameter.of(method, codecs);
        assertThat(ClassicParameter.of(method, codecs)).isEqualTo(once);
        assertThat(ClassicParameter.of(method, codecs).get(0).codec())
                .isSameAs(once.get(0).codec());
    }

    @Test
    void bothWiresCarryTheSame() throws Exception {
        Server server = Server.builder(RegistryServer.registry(new Service()))
                .host("127.0.0.1")
                .classic(true)
                .build()
                .start();
        try {
            for (Client.Builder builder :
                    List.of(Client.builder(), Client.builder().classic())) {
                try (Client client = builder.build()) {
                    Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
                    assertThat(calls.transfer(7, "Eve", "Bob")).isEqualTo("Bob to Eve: 7");
                    assertThat(calls.person(new Person("Bob"))).isEqualTo("Bob");
                    assertThat(calls.person(new Person(""))).isEmpty();
                    assertThat(calls.person(null)).isEqualTo("nobody");
                    assertThat(calls.changed(true, "a")).isEqualTo("atrue");
                    assertThat(calls.several(new Person("Bob"), true)).isEqualTo("Bobtrue");
                    assertThat(calls.several(new Person(""), false)).isEqualTo("false");
                    assertThat(calls.list(List.of("a", "b"))).isEqualTo("[a, b]");
                    assertThat(calls.list(List.of())).isEqualTo("[]");
                    assertThat(calls.list(null)).isEqualTo("null");
                    assertThat(calls.box(0, "")).isEqualTo("0 ");
                    assertThat(calls.box(null, null)).isEqualTo("null null");
                }
            }
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    private static String bytes(String method, Object value) {
        java.lang.reflect.Method found = Arrays.stream(Service.class.getDeclaredMethods())
                .filter(each -> each.getName().equals(method))
                .findFirst()
                .orElseThrow();
        ByteBuf out = Unpooled.buffer();
        ClassicParameter.of(found, Codecs.standard(Service.class))
                .get(0)
                .codec()
                .write(value, out);
        return ByteBufUtil.hexDump(out);
    }

    /** Field 1 is the parameter, or the body is the parameter if that is a message that cannot be null. */
    @Test
    void theBytesAreThoseThatThePageOfTheWireSays() {
        assertThat(bytes("person", new Person("Bob"))).isEqualTo("0a050a03426f62");
        assertThat(bytes("list", List.of("a", "b"))).isEqualTo("0a060a01610a0162");
        assertThat(bytes("box", 0)).isEqualTo("0800");
        assertThat(bytes("transfer", "Bob")).isEqualTo("0a03426f62");
        assertThat(bytes("several", new Person("Bob"))).isEqualTo("0a03426f62");
    }
}
