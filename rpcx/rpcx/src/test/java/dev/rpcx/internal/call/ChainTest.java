package dev.rpcx.internal.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.Interceptor;
import dev.rpcx.Metadata;
import dev.rpcx.internal.server.HandledContext;
import io.netty.util.concurrent.Ticker;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class ChainTest {
    private static final CallInvocation CALL =
            new CallInvocation("greeter", "greet", new Object[] {"alice"}, Metadata.EMPTY, null);

    /** An invocation that was not made by RPCX. The test of an interceptor may use one. */
    private static final class Foreign implements Interceptor.Invocation {
        @Override
        public String service() {
            return CALL.service();
        }

        @Override
        public String method() {
            return CALL.method();
        }

        @Override
        public @Nullable Object[] arguments() {
            return CALL.arguments();
        }

        @Override
        public Metadata metadata() {
            return CALL.metadata();
        }

        @Override
        public Interceptor.Invocation withArguments(@Nullable Object... others) {
            return this;
        }

        @Override
        public Interceptor.Invocation with(String name, String value) {
            return this;
        }

        @Override
        public Interceptor.Invocation withEachAttempt(String name, Supplier<String> value) {
            return this;
        }

        @Override
        public String toString() {
            return CALL.toString();
        }
    }

    private static Interceptor adding(String name, List<String> seen) {
        return (call, next) -> {
            seen.add(name);
            return next.proceed(call.with(name, name));
        };
    }

    @Test
    void theFirstIsTheOutermost() throws Throwable {
        List<String> seen = new ArrayList<>();
        Interceptor.Next chain =
                Chain.of(List.of(adding("a", seen), adding("b", seen)), call -> call + " " + call.metadata());
        assertThat(chain.proceed(CALL)).isEqualTo("greeter/greet Metadata[a, b]");
        assertThat(seen).containsExactly("a", "b");
        assertThat(Chain.of(List.of(), call -> call).proceed(CALL)).isSameAs(CALL);
    }

    @Test
    void whatIsMadeOfACallKeepsTheRestOfIt() {
        HandledContext context = new HandledContext(0, Metadata.EMPTY, null, Ticker.systemTicker());
        CallInvocation call = new CallInvocation("greeter", "greet", new Object[] {"alice"}, Metadata.EMPTY, context);
        CallInvocation made = call.with("a", "1").withArguments("bob", null).withEachAttempt("n", () -> "2");
        assertThat(made).hasToString("greeter/greet");
        assertThat(made.service()).isEqualTo("greeter");
        assertThat(made.method()).isEqualTo("greet");
        assertThat(made.arguments()).containsExactly("bob", null);
        assertThat(made.metadata()).hasToString("Metadata[a][n]");
        assertThat(made.handled).isSameAs(context);
        assertThat(call.arguments()).containsExactly("alice");
        assertThat(call.metadata().isEmpty()).isTrue();
        assertThat(CALL.ageNanos()).isZero();
        assertThat(call.ageNanos()).isPositive();
    }

    @Test
    void aCallThatIsNobodysIsRefused() {
        String refused = "call: an object of class " + Foreign.class.getName()
                + " (expected: the Invocation that was passed in, or one derived from it)";
        Interceptor proceeds = (call, next) -> next.proceed(call);
        Interceptor makes = (call, next) -> next.proceed(new Foreign());
        for (Interceptor.Next chain : List.of(
                Chain.of(List.of(), call -> "x"),
                Chain.of(List.of(proceeds), call -> "x"),
                Chain.of(List.of(makes), call -> "x"))) {
            assertThatThrownBy(() -> chain.proceed(new Foreign()))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage(refused);
        }
        assertThatThrownBy(() -> Chain.of(List.of(makes, proceeds), call -> "x").proceed(CALL))
                .hasMessage(refused);
        assertThatThrownBy(() -> Chain.of(List.of(makes), call -> "x").proceed(CALL))
                .hasMessage(refused);
    }

    @Test
    void noInterceptorIsNull() {
        assertThatThrownBy(() -> Chain.of(Arrays.asList((Interceptor) null), call -> "x"))
                .isInstanceOf(NullPointerException.class)
                .hasMessage("interceptors: null (expected: none of them null)");
    }
}
