package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.util.concurrent.Ticker;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What a call's context knows of the threads that run for the call. */
class CallThreadsTest {
    @Test
    void aCallLeavesItsLimitOnceWithTheLastOfItsThreadsAndSaysThatItBroughtAResult() {
        CallContext context = new CallContext(0, Metadata.EMPTY, null, Ticker.systemTicker());
        List<Boolean> left = new ArrayList<>();
        CallThreads.Call call = new CallThreads.Call() {
            @Override
            public ServerMethod method() {
                throw new IllegalStateException("nobody asks");
            }

            @Override
            public CallContext context() {
                return context;
            }

            @Override
            public boolean isRunner() {
                return false;
            }

            @Override
            public void leaveNow(boolean isDone) {
                assertThat(context.hasThreads()).isTrue();
                left.add(isDone);
            }

            @Override
            public void threadsEnded(CallContext of) {}
        };
        context.beginThread();
        context.beginThread();
        assertThat(context.leavesUnlessThreads(true)).isFalse();
        assertThat(context.beginStep()).isFalse();
        assertThat(context.enterHandler()).isFalse();
        assertThat(context.endThread(call)).isFalse();
        assertThat(left).isEmpty();
        // its connection ends
        assertThat(context.leavesUnlessThreads(false)).isFalse();
        assertThat(context.endUnlessThreads()).isFalse();
        assertThat(context.endThread(call)).isTrue();
        assertThat(left).containsExactly(true);
        assertThat(context.leavesUnlessThreads(false)).isTrue();
    }
}
