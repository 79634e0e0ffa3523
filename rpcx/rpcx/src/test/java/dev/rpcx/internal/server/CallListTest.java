package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.HandPlatform;
import dev.rpcx.Inside;
import dev.rpcx.Method;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.wire.Wire;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests the order of the calls in a list, and how much of the list is looked at. */
@Timeout(60)
class CallListTest {
    @RPCXServer("list")
    static final class Service {
        @Method
        void nothing() {}
    }

    private final HandPlatform platform = new HandPlatform();
    private final Server server = Inside.on(Server.builder(RegistryServer.registry(new Service())), platform)
            .build()
            .start();
    private final EmbeddedChannel channel = platform.accept();
    private final Account account = Objects.requireNonNull(
            Ledger.ofClient("list", Wire.MAX_MESSAGE_BYTES).open(null));
    private final ServerConnection connection = new ServerConnection(channel, Inside.core(server), account, 0);
    private final CallList list = new CallList();

    @AfterEach
    void end() {
        connection.close("the test is over");
        channel.close();
        platform.pass(channel, 2, TimeUnit.HOURS);
        channel.releaseOutbound();
        account.close();
    }

    private ServerCall call() {
        return new ServerCall(connection);
    }

    private List<ServerCall> calls(int count) {
        List<ServerCall> calls = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            calls.add(call());
            list.add(calls.get(i));
        }
        return calls;
    }

    private List<ServerCall> inOrder() {
        List<ServerCall> found = new ArrayList<>();
        ServerCall before = null;
        for (ServerCall call = list.first(); call != null; call = call.loopState.following) {
            assertThat(call.loopState.previous).isSameAs(before);
            assertThat(list.contains(call)).isTrue();
            found.add(call);
            before = call;
        }
        return found;
    }

    @Test
    void callsStandInTheOrderInWhichTheyCameWhicheverAreTakenOut() {
        List<ServerCall> calls = calls(6);
        for (int taken : new int[] {2, 0, 3}) {
            list.remove(calls.remove(taken));
            assertThat(inOrder()).isEqualTo(calls);
        }
        calls.add(call());
        list.add(calls.get(calls.size() - 1));
        assertThat(inOrder()).isEqualTo(calls);
        while (!calls.isEmpty()) {
            list.remove(calls.remove(calls.size() - 1));
            assertThat(inOrder()).isEqualTo(calls);
        }
        assertThat(list.isEmpty()).isTrue();
    }

    @Test
    void aCallIsInOneListAtMost() {
        ServerCall call = calls(1).get(0);
        CallList other = new CallList();
        assertThatThrownBy(() -> other.add(call)).isInstanceOf(IllegalStateException.class);
        other.remove(call);
        assertThat(inOrder()).containsExactly(call);
        list.remove(call);
        list.remove(call);
        assertThat(list.contains(call)).isFalse();
        other.add(call);
        assertThat(other.contains(call)).isTrue();
    }

    @Test
    void whatIsTakenOutHasItsNeighboursLookedAtAndNoOther() {
        List<ServerCall> calls = calls(7);
        // a walk along the list, from either end or from the call, would never come back from here
        calls.get(1).loopState.following = calls.get(1);
        calls.get(1).loopState.previous = calls.get(1);
        calls.get(5).loopState.following = calls.get(5);
        calls.get(5).loopState.previous = calls.get(5);
        list.remove(calls.get(3));
        assertThat(calls.get(2).loopState.following).isSameAs(calls.get(4));
        assertThat(calls.get(4).loopState.previous).isSameAs(calls.get(2));
    }

    @Test
    void aCallThatCameAgainHasNotBeenThereSince() {
        assertThat(list.size()).isZero();
        assertThat(list.first()).isNull();
        List<ServerCall> calls = calls(3);
        assertThat(list.size()).isEqualTo(3);
        ServerCall call = calls.get(1);
        long addition = call.loopState.addition;
        assertThat(addition).isEqualTo(2);
        assertThat(list.hasKept(call, addition)).isTrue();
        assertThat(list.hasKept(call, addition + 1)).isFalse();
        assertThat(new CallList().hasKept(call, addition)).isFalse();
        list.remove(call);
        assertThat(list.size()).isEqualTo(2);
        assertThat(list.hasKept(call, addition)).isFalse();
        list.remove(call);
        assertThat(list.size()).isEqualTo(2);
        list.add(call);
        assertThat(list.hasKept(call, addition)).isFalse();
        assertThat(list.hasKept(call, 4)).isTrue();
        assertThat(list.isEmpty()).isFalse();
    }
}
