package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests what an error says about a value that does not fit. The text has the names of the schema, and never those of
 * the server's classes.
 */
@Timeout(60)
class NamesOnTheWireTest {
    enum Color {
        NONE,
        RED
    }

    enum MoreColors {
        NONE,
        RED,
        GREEN
    }

    record Aged(int age) {
        Aged {
            if (age == -1) {
                throw new IllegalArgumentException("age: -1 (expected: 0 or more)");
            }
            if (age == -2) {
                throw new IllegalStateException();
            }
            if (age == -3) {
                throw new NoClassDefFoundError("Could not initialize class " + Aged.class.getName());
            }
            if (age == -4) {
                leftOut().getName();
            }
            if (age == -5) {
                Objects.requireNonNull(leftOut(), "account");
            }
        }
    }

    record AnyAge(int age) {}

    /** Stands for a field that was not sent. */
    @SuppressWarnings("NullAway")
    private static Account leftOut() {
        return null;
    }

    public static class Account {
        private String name = "a";

        public String getName() {
            return name;
        }

        public void setName(String to) {
            name = to;
        }
    }

    public static final class SecretAccount extends Account {}

    record Failing(String text) {
        @Override
        public String text() {
            throw new IllegalStateException("no text today");
        }
    }

    @RPCXServer("names")
    static final class Names {
        @Method
        String paint(List<Color> colors) {
            return colors.toString();
        }

        @Method
        String age(Aged aged) {
            return aged.toString();
        }

        @Method
        Account account() {
            return new SecretAccount();
        }

        @Method
        Failing failing() {
            return new Failing("x");
        }

        @Method
        String nothing() {
            return leftOut().getName();
        }

        @Method
        String other() {
            Object account = new Account();
            return ((SecretAccount) account).getName();
        }

        @Method
        String required() {
            return Objects.requireNonNull(leftOut(), "an account").getName();
        }
    }

    @RPCXClient(remoteServerName = "names")
    interface NamesClient {
        String paint(List<MoreColors> colors);

        String age(AnyAge aged);

        Account account();

        Failing failing();

        String nothing();

        String other();

        String required();
    }

    private final Server server = Server.builder(RegistryServer.registry(new Names()))
            .classic(true)
            .build()
            .start();

    @AfterEach
    void stop() {
        server.stop(Duration.ZERO);
    }

    private static void expect(Callable<?> call, RPCXException.Code code, String... parts) {
        RPCXException error = catchThrowableOfType(RPCXException.class, call::call);
        assertThat(error.code()).isEqualTo(code);
        assertThat(error.getMessage()).contains(parts).doesNotContain("dev.rpcx", "$", "java.", "Exception", "Error");
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void noNameOfAClassIsSent(boolean isClassic) {
        Client.Builder builder = Client.builder();
        try (Client client = (isClassic ? builder.classic() : builder).build()) {
            NamesClient names = client.create(NamesClient.class, "127.0.0.1", server.port());
            assertThat(names.paint(List.of(MoreColors.RED))).isEqualTo("[RED]");
            RPCXException.Code invalid = RPCXException.Code.INVALID;
            expect(() -> names.paint(List.of(MoreColors.GREEN)), invalid, "3 for Color");
            expect(() -> names.age(new AnyAge(-1)), invalid, "Aged refused what was read: age: -1 (expected");
            expect(() -> names.age(new AnyAge(-2)), invalid, "without a message");
            expect(() -> names.age(new AnyAge(-3)), invalid, "do not fit together");
            expect(() -> names.age(new AnyAge(-4)), invalid, "Aged refused what was read: null where");
            expect(() -> names.age(new AnyAge(-5)), invalid, "Aged refused what was read: account");
            RPCXException.Code failed = RPCXException.Code.HANDLER_FAILED;
            expect(names::account, failed, "Account: an object of a subclass");
            expect(names::failing, failed, "Failing could not be written: no text today");
            expect(names::nothing, failed, "null where");
            expect(names::other, failed, "do not fit together");
            expect(names::required, failed, "an account");
        }
    }
}
