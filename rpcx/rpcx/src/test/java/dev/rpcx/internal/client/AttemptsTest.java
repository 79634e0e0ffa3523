package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Client;
import dev.rpcx.HandPlatform;
import dev.rpcx.Inside;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXException.Code;
import dev.rpcx.RPCXException.Executed;
import dev.rpcx.codec.Codecs;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.wire.MethodDictionary;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests whether a call is made again, and what its caller is told, without sockets. */
@Timeout(60)
class AttemptsTest {
    @RPCXClient(remoteServerName = "there")
    interface Remote {
        String once(String text);

        @Method(idempotent = true)
        String again(String text);
    }

    /** A route that has other instances, or none, and gives no connections. */
    private static final class Beside extends Route {
        private boolean hasOthers = true;
        private boolean hasFree = true;

        Beside(Client client) {
            super(Inside.core(client));
        }

        @Override
        public boolean hasOthers(@Nullable ClientAddress used) {
            return hasOthers;
        }

        @Override
        boolean hasFreeBeside(ClientAddress asked) {
            return hasFree;
        }

        @Override
        public @Nullable ClientConnection ready(int key) {
            return null;
        }

        @Override
        public @Nullable ClientConnection readyBeside(List<ClientAddress> others) {
            return null;
        }

        @Override
        public PendingConnection<ClientConnection> connect(int key) {
            throw new UnsupportedOperationException();
        }

        @Override
        public PendingConnection<ClassicClientConnection> connectClassic() {
            throw new UnsupportedOperationException();
        }

        @Override
        public String toString() {
            return "beside";
        }
    }

    private static final RPCXException UNSENT = LocalFailure.notSent(Code.UNAVAILABLE, "closing");
    private static final RPCXException REFUSED = error(Code.NOT_FOUND, Executed.NOT_EXECUTED);
    private static final RPCXException LOST = error(Code.UNAVAILABLE, Executed.MAYBE);
    private static final RPCXException NOT_RUN = error(Code.UNAVAILABLE, Executed.NOT_EXECUTED);
    private static final RPCXException OVERLOADED = error(Code.OVERLOADED, Executed.NOT_EXECUTED);

    private final HandPlatform hand = new HandPlatform();
    private final Client client = Inside.on(Client.builder(), hand).build();
    private final Beside route = new Beside(client);
    private final ClientAddress one = Inside.core(client).address("one", 1);
    private final ClientAddress other = Inside.core(client).address("other", 1);

    @AfterEach
    void end() {
        Inside.core(client).end();
    }

    private static RPCXException error(Code code, Executed executed) {
        return new RPCXException(code, "as the server says", executed, null);
    }

    private ClientSteps steps(String name, ClientMethod.Kind kind) throws Exception {
        Codecs codecs = Codecs.standard(Remote.class);
        java.lang.reflect.Method method = Remote.class.getMethod(name, String.class);
        return new ClientSteps(
                new ClientMethod(
                        7,
                        kind,
                        "there",
                        name,
                        codecs.parameters(method),
                        codecs.result(method),
                        MethodDictionary.UNKNOWN_SHAPE,
                        MethodSchema.UNKNOWN,
                        TimeUnit.MINUTES.toNanos(1),
                        null,
                        method.getAnnotation(Method.class),
                        null),
                route);
    }

    private ClientSteps once() throws Exception {
        return steps("once", ClientMethod.Kind.BLOCKING);
    }

    private ClientSteps again() throws Exception {
        return steps("again", ClientMethod.Kind.BLOCKING);
    }

    /** Returns how many attempts a call makes in all where each attempt ends with this error. */
    private int attempts(ClientSteps steps, RPCXException error) {
        int all = 1;
        for (Attempts next = Attempts.next(null, steps, error, null, one);
                next != null;
                next = Attempts.next(next, steps, error, null, one)) {
            all++;
        }
        return all;
    }

    private Attempts second(ClientSteps steps, RPCXException error) {
        Attempts next = Attempts.next(null, steps, error, null, one);
        assertThat(next).isNotNull();
        return java.util.Objects.requireNonNull(next);
    }

    private int budget() {
        int left = 0;
        while (route.budget().spend()) {
            left++;
        }
        return left;
    }

    private int refusals() {
        int left = 0;
        while (route.refusals(7).spend()) {
            left++;
        }
        return left;
    }

    @Test
    void whatHasNotBeenSentCostsNothingAndIsTriedSoOften() throws Exception {
        assertThat(attempts(once(), UNSENT)).isEqualTo(Attempts.MAX_ATTEMPTS);
        assertThat(budget()).isEqualTo(10);
        assertThat(attempts(steps("once", ClientMethod.Kind.STREAM), UNSENT)).isEqualTo(Attempts.MAX_ATTEMPTS);
    }

    @Test
    void whatHasBeenSentCostsARetryEachTime() throws Exception {
        assertThat(attempts(once(), NOT_RUN)).isEqualTo(Attempts.MAX_SENT);
        assertThat(budget()).isEqualTo(10 - 2);
        assertThat(attempts(once(), NOT_RUN)).isEqualTo(1);
    }

    @Test
    void attemptsThatHaveBeenSentAreCountedApart() throws Exception {
        ClientSteps steps = once();
        Attempts next = second(steps, UNSENT);
        for (int sent = 1; sent < Attempts.MAX_SENT; sent++) {
            assertThat(Attempts.isWorthAnother(next, steps, NOT_RUN, null, one)).isTrue();
            next = Attempts.next(next, steps, NOT_RUN, null, one);
        }
        assertThat(Attempts.isWorthAnother(next, steps, NOT_RUN, null, one)).isFalse();
        assertThat(Attempts.isWorthAnother(next, steps, UNSENT, null, one)).isTrue();
    }

    @Test
    void onlyWhatIsIdempotentIsMadeAgainWhereItMayHaveRun() throws Exception {
        assertThat(attempts(once(), LOST)).isEqualTo(1);
        assertThat(attempts(again(), LOST)).isEqualTo(Attempts.MAX_SENT);
        assertThat(attempts(again(), error(Code.HANDLER_FAILED, Executed.EXECUTED)))
                .isEqualTo(1);
        assertThat(attempts(again(), LocalFailure.noRoom("no memory", Executed.NOT_EXECUTED)))
                .isEqualTo(1);
    }

    @Test
    void aStreamIsNotMadeAgainOnceItHasBeenSent() throws Exception {
        assertThat(attempts(steps("again", ClientMethod.Kind.STREAM), NOT_RUN)).isEqualTo(1);
        assertThat(attempts(steps("again", ClientMethod.Kind.STREAM), REFUSED)).isEqualTo(1);
    }

    @Test
    void whatIsOverloadedGoesToAnotherInstanceOrNowhere() throws Exception {
        assertThat(attempts(once(), OVERLOADED)).isEqualTo(Attempts.MAX_SENT);
        route.hasOthers = false;
        assertThat(attempts(once(), OVERLOADED)).isEqualTo(1);
    }

    @Test
    void whatIsRefusedGoesToOneOtherInstance() throws Exception {
        assertThat(attempts(once(), REFUSED)).isEqualTo(2);
        assertThat(refusals()).isEqualTo(RefusalBudget.MAX_RETRIES - 1);
        assertThat(attempts(once(), REFUSED)).isEqualTo(1);
        assertThat(budget()).isEqualTo(10);
    }

    @Test
    void whatIsRefusedIsNotMadeAgainWhereNoOtherIsFree() throws Exception {
        route.hasFree = false;
        assertThat(attempts(once(), REFUSED)).isEqualTo(1);
        assertThat(Attempts.next(null, once(), REFUSED, null, null)).isNull();
        route.hasOthers = false;
        assertThat(Attempts.isWorthAnother(null, once(), REFUSED, null, one)).isFalse();
    }

    @Test
    void anInstanceThatRefusesWhatAnotherTakesHasFailedAndTheRetryCostsNothing() throws Exception {
        ClientSteps steps = once();
        Attempts next = second(steps, REFUSED);
        next.compare(steps, one, Health.Outcome.ANSWERED);
        next.compare(steps, other, Health.Outcome.REFUSED);
        assertThat(refusals()).isEqualTo(RefusalBudget.MAX_RETRIES - 1);
        next.compare(steps, other, Health.Outcome.FAULT);
        assertThat(refusals()).isEqualTo(1);
        second(steps, NOT_RUN).compare(steps, other, Health.Outcome.ANSWERED);
        assertThat(refusals()).isZero();
    }

    @Test
    void theNextAttemptAvoidsTheInstanceOfTheLastThatWasSent() throws Exception {
        assertThat(Attempts.avoided(null)).isNull();
        assertThat(Attempts.haveFailed(null)).isFalse();
        ClientSteps steps = once();
        Attempts next = second(steps, UNSENT);
        assertThat(Attempts.haveFailed(next)).isTrue();
        assertThat(Attempts.avoided(next)).isNull();
        next = Attempts.next(next, steps, NOT_RUN, null, one);
        assertThat(Attempts.avoided(next)).isSameAs(one);
        next = Attempts.next(next, steps, NOT_RUN, null, null);
        assertThat(Attempts.avoided(next)).isSameAs(one);
    }

    @Test
    void theSecondCallOfAHedgeAvoidsTheInstanceOfTheFirst() throws Exception {
        Attempts none = Attempts.beside(one);
        assertThat(Attempts.haveFailed(none)).isFalse();
        assertThat(Attempts.avoided(none)).isSameAs(one);
        Attempts next = Attempts.next(none, once(), NOT_RUN, null, other);
        assertThat(Attempts.haveFailed(next)).isTrue();
        assertThat(Attempts.avoided(next)).isSameAs(other);
    }

    @Test
    void aHedgeCostsARetryUnlessNothingOfItIsSent() throws Exception {
        assertThat(Attempts.mayHedge(once())).isTrue();
        assertThat(budget()).isEqualTo(9);
        assertThat(Attempts.mayHedge(once())).isFalse();
        Attempts.giveBackHedge(once());
        assertThat(budget()).isEqualTo(1);
    }

    @Test
    void aCallerIsNotToldThatNothingRanAfterAnAttemptThatMayHave() throws Exception {
        assertThat(Attempts.callerError(null, NOT_RUN)).isSameAs(NOT_RUN);
        assertThat(Attempts.callerError(second(once(), NOT_RUN), NOT_RUN)).isSameAs(NOT_RUN);
        Attempts lost = second(again(), LOST);
        RPCXException error = Attempts.callerError(lost, NOT_RUN);
        assertThat(error.executed()).isEqualTo(Executed.MAYBE);
        assertThat(error.code()).isEqualTo(Code.UNAVAILABLE);
        assertThat(error).hasMessage(NOT_RUN.getMessage()).hasCause(NOT_RUN);
        RPCXException ran = error(Code.HANDLER_FAILED, Executed.EXECUTED);
        assertThat(Attempts.callerError(lost, ran)).isSameAs(ran);
        assertThat(Attempts.callerError(lost, UNSENT)).isExactlyInstanceOf(RPCXException.class);
        Throwable ofUser = new IllegalStateException();
        assertThat(Attempts.callerError(lost, ofUser)).isSameAs(ofUser);
        assertThat(Attempts.callerError(ofUser, true)).isSameAs(ofUser);
        assertThat(Attempts.callerError(NOT_RUN, false)).isSameAs(NOT_RUN);
        assertThat(Attempts.mayHaveRun(ofUser)).isTrue();
    }
}
