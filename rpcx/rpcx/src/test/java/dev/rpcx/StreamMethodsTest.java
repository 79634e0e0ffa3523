package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.call.Streams;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests which methods have streams, and how much credit a peer gives. */
class StreamMethodsTest {
    @SuppressWarnings("rawtypes")
    interface Kinds {
        String unary(String text);

        Flow.Publisher<String> brings(int a, List<String> b);

        void takes(Flow.Publisher<Long> items);

        Flow.Publisher<String> both(Flow.Publisher<Long> items);

        void raw(Flow.Publisher items);

        void beside(Flow.Publisher<Long> items, int more);

        void besideFirst(List<String> more, Flow.Publisher<Long> items);

        @OneWay
        void oneWay(Flow.Publisher<Long> items);

        @OneWay
        Flow.Publisher<Long> oneWayBrings();

        @OneWay
        void notice(List<Long> text);
    }

    private static java.lang.reflect.Method method(String name) {
        return Arrays.stream(Kinds.class.getDeclaredMethods())
                .filter(method -> method.getName().equals(name))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void aMethodBringsAStreamByItsResult() {
        assertThat(Streams.returnsStream(method("brings"))).isTrue();
        assertThat(Streams.returnsStream(method("both"))).isTrue();
        assertThat(Streams.returnsStream(method("takes"))).isFalse();
        assertThat(Streams.returnsStream(method("unary"))).isFalse();
    }

    @Test
    void aMethodTakesAStreamByItsOnlyParameter() {
        assertThat(Streams.itemsTaken(method("takes"))).isEqualTo(Long.class);
        assertThat(Streams.itemsTaken(method("both"))).isEqualTo(Long.class);
        assertThat(Streams.itemsTaken(method("unary"))).isNull();
        assertThat(Streams.itemsTaken(method("brings"))).isNull();
        assertThat(Streams.itemsTaken(method("notice"))).isNull();
    }

    @ParameterizedTest
    @ValueSource(strings = {"raw", "beside", "besideFirst", "oneWay", "oneWayBrings"})
    void whatNobodyCouldServeIsRefused(String name) {
        assertThatThrownBy(() -> Streams.itemsTaken(method(name)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("expected");
    }

    private static long credit(long number) {
        ByteBuf payload = Unpooled.buffer();
        Varint.write(payload, number);
        return Streams.credit(payload);
    }

    @Test
    void creditIsPositiveAndWhatIsBeyondANumberHasNoLimit() {
        assertThat(credit(1)).isEqualTo(1);
        assertThat(credit(Long.MAX_VALUE)).isEqualTo(Long.MAX_VALUE);
        assertThat(credit(-1)).isEqualTo(Long.MAX_VALUE);
        assertThatThrownBy(() -> credit(0)).isInstanceOf(WireFault.class);
    }

    @Test
    void creditsAddUpToAsMuchAsANumberHolds() {
        assertThat(Streams.sum(2, 3)).isEqualTo(5);
        assertThat(Streams.sum(Long.MAX_VALUE - 3, 3)).isEqualTo(Long.MAX_VALUE);
        assertThat(Streams.sum(Long.MAX_VALUE - 3, 4)).isEqualTo(Long.MAX_VALUE);
        assertThat(Streams.sum(4, Long.MAX_VALUE)).isEqualTo(Long.MAX_VALUE);
    }

    @Test
    void theFirstCreditThatWaitsNeedsAFrameAndLaterOnesGoWithIt() {
        AtomicLong unsent = new AtomicLong();
        assertThat(Streams.accumulateCredit(unsent, 3)).isTrue();
        assertThat(Streams.accumulateCredit(unsent, 4)).isFalse();
        assertThat(unsent.getAndSet(0)).isEqualTo(7);
        assertThat(Streams.accumulateCredit(unsent, 1)).isTrue();
    }

    @Test
    void aRequestThatIsAStreamHasAnEmptyBodyAndIsReadToItsEnd() {
        ByteBuf body = Unpooled.buffer();
        Streams.NO_PARAMETERS.write(new Object[] {1}, body);
        assertThat(body.isReadable()).isFalse();
        body.writeZero(3);
        assertThat(Streams.NO_PARAMETERS.read(body)).isEmpty();
        assertThat(body.isReadable()).isFalse();
    }
}
