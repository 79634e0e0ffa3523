package dev.rpcx.internal.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.lang.ref.WeakReference;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests that the future of a call that has ended keeps only its result, and nothing of its connection. */
class KeptFuturesTest {
    private enum End {
        RESULT,
        FAILURE,
        CANCEL;

        void of(CallFuture<String> future) {
            switch (this) {
                case RESULT -> future.succeed("x");
                case FAILURE -> future.fail(new IllegalStateException("on purpose"));
                case CANCEL -> future.cancel(true);
            }
        }
    }

    @ParameterizedTest
    @EnumSource(End.class)
    void afterItsEndAFutureHoldsNothingOfItsCall(End end) {
        CallFuture<String> future = new CallFuture<>();
        WeakReference<Object> connection = held(future);
        end.of(future);
        await().until(() -> {
            System.gc();
            return connection.refersTo(null);
        });
        assertThat(future).isDone();
    }

    private static WeakReference<Object> held(CallFuture<String> future) {
        Object connection = new Object();
        future.onCancel(connection::hashCode);
        return new WeakReference<>(connection);
    }

    @Test
    void aCancelReachesTheCallOnce() {
        CallFuture<String> future = new CallFuture<>();
        CountDownLatch told = new CountDownLatch(2);
        future.onCancel(told::countDown);
        future.cancel(true);
        future.cancel(true);
        assertThat(told.getCount()).isOne();
    }
}
