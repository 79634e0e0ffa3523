package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Client;
import dev.rpcx.HandPlatform;
import dev.rpcx.Inside;
import dev.rpcx.RPCXClient;
import dev.rpcx.internal.client.ClientConnection;
import io.netty.channel.embedded.EmbeddedChannel;
import java.lang.reflect.Field;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests who has the turn to read from a socket. The test decides who had it last. */
@Timeout(60)
class ReadTurnAloneTest {
    private static final int LOOP = 0;
    private static final int FREE = 1;
    private static final int CALLER = 2;
    private static final int HANDED_TO_LOOP = 3;
    private static final int ENDED = 4;
    private static final int BROKEN = 5;

    @RPCXClient(remoteServerName = "hand")
    interface Remote {
        CompletableFuture<String> echo(String text);
    }

    private final HandPlatform hand = new HandPlatform();
    private final Client client =
            Inside.on(Client.builder(), hand).connections(1, 1).build();
    private final CompletableFuture<String> call =
            client.create(Remote.class, "peer", 1).echo("a");
    private final EmbeddedChannel channel = hand.opened.get(0);
    private Field owner;
    private ReadTurn turn;

    @BeforeEach
    void connect() throws ReflectiveOperationException {
        owner = ReadTurn.class.getDeclaredField("owner");
        owner.setAccessible(true);
        hand.settle(channel);
        turn = Objects.requireNonNull(channel.pipeline().get(ClientConnection.class)).readTurn;
    }

    @AfterEach
    void nothingIsLeft() {
        hand.end(client, channel, List.of(call));
    }

    static Stream<Arguments> ends() {
        List<Consumer<ReadTurn>> ends = List.of(ReadTurn::end, ReadTurn::endToLoop, ReadTurn::socketCloses);
        return Stream.of(LOOP, FREE, HANDED_TO_LOOP, BROKEN, ENDED)
                .flatMap(last -> ends.stream().map(end -> Arguments.of(last, end)));
    }

    @ParameterizedTest
    @MethodSource("ends")
    void whoeverHadItLastTheLoopHasItBehindTheEnd(int last, Consumer<ReadTurn> end)
            throws ReflectiveOperationException {
        owner.setInt(turn, last);
        end.accept(turn);
        assertThat(owner.getInt(turn)).isEqualTo(ENDED);
        assertThat(turn.isLent()).isFalse();
        assertThat(turn.takeForLoop()).isTrue();
        turn.lend();
        assertThat(turn.isLent()).as("for good").isFalse();
    }

    /** Otherwise the number of the socket might soon belong to another connection. */
    @Test
    void theEndWaitsForACallerAtTheSocket() throws Exception {
        owner.setInt(turn, CALLER);
        assertThat(turn.isLent()).isTrue();
        Thread ending = new Thread(turn::end);
        ending.start();
        ending.join(100);
        assertThat(ending.isAlive()).isTrue();
        owner.setInt(turn, FREE);
        ending.join();
        assertThat(owner.getInt(turn)).isEqualTo(ENDED);
    }

    /** What the caller had read is lost, and nobody knows where the next frame begins. */
    @Test
    void aCallerThatHasFailedAtTheSocketEndsTheConnection() throws Exception {
        owner.setInt(turn, BROKEN);
        assertThat(turn.takeForLoop()).isFalse();
        assertThat(channel.isOpen()).as("not within what asks").isTrue();
        hand.settle(channel);
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void aSocketThatNoThreadCanReadIsNotLent() {
        turn.lend();
        assertThat(turn.isLent()).isFalse();
        turn.lend();
        assertThat(turn.isLent()).isFalse();
        turn.handToLoop();
        assertThat(turn.takeForLoop()).isTrue();
    }
}
