package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** The same of a server whose interceptors hang something of their own on what the handlers return. */
class WatchedLeftoverTest extends LeftoverTest {
    private static final class Watching implements Interceptor {
        final List<String> seen = new ArrayList<>();

        @Override
        public Object intercept(Invocation call, Next next) throws Throwable {
            CompletableFuture<?> future = (CompletableFuture<?>) next.proceed(call);
            future.whenComplete((value, thrown) -> seen.add(call.method() + " " + value + " " + thrown));
            return future;
        }
    }

    /** Made with the server, and so before the fields of this class would be. */
    @SuppressWarnings("NullAway.Init")
    private Watching watching;

    @Override
    Server.Builder built(Server.Builder server) {
        watching = new Watching();
        return server.interceptor(watching).interceptor(CallLog.ofServer());
    }

    @Test
    void interceptorsHearOfTheEndOfACallThatWasGivenUp() {
        startAndCancel(ID, "shared", 1);
        platform.handleAll(channel);
        assertThat(watching.seen)
                .singleElement()
                .asString()
                .startsWith("shared null")
                .contains("the caller is gone");
        service.next.complete(1);
        assertThat(watching.seen).hasSize(1);
    }

    @Test
    void interceptorsHearOfAResult() {
        start(ID, "shared", 1);
        service.next.complete(1);
        assertThat(watching.seen).containsExactly("shared 1 null");
    }
}
