package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests exceptions of handlers whose own methods fail. */
@Timeout(60)
public class UnspeakableErrorsTest {
    public static final class Unspeakable extends RuntimeException {
        @Override
        public String getMessage() {
            throw new IllegalStateException("no words");
        }
    }

    public static final class Circular extends CompletionException {
        @Override
        public synchronized Throwable getCause() {
            return this;
        }
    }

    public static final class Causeless extends CompletionException {
        @Override
        public synchronized Throwable getCause() {
            throw new IllegalStateException("no cause");
        }
    }

    @RPCXServer("unspeakable")
    public static final class Service {
        @Method
        String fail() {
            throw new Unspeakable();
        }
    }

    @RPCXClient(remoteServerName = "unspeakable")
    public interface Failing {
        CompletableFuture<String> fail();
    }

    @Test
    void anExceptionThatIsItsOwnCauseIsAnAnswerAllTheSame() {
        assertThat(ServerCallErrors.failed(new Circular()).code()).isEqualTo(RPCXException.Code.HANDLER_FAILED);
    }

    /** There may be memory at another attempt, or at another server. */
    @Test
    void aRequestThatFindsNoHeapIsNotTheFaultOfItsCaller() {
        assertThat(ServerCallErrors.unreadable(new OutOfMemoryError("Java heap space"))
                        .code())
                .isEqualTo(RPCXException.Code.OVERLOADED);
        assertThat(ServerCallErrors.unreadable(new IllegalArgumentException()).code())
                .isEqualTo(RPCXException.Code.INVALID);
    }

    @Test
    void whatAHandlerSaysIsTold() {
        RPCXException said = ServerCallErrors.failed(new IllegalStateException("its words"));
        assertThat(said.code()).isEqualTo(RPCXException.Code.HANDLER_FAILED);
        assertThat(said).hasMessage("its words");
        assertThat(said.executed()).isEqualTo(RPCXException.Executed.EXECUTED);
    }

    /** This holds even if the handler passes on the refusal of another server. */
    @Test
    void aHandlerThatHasRunIsNeverSaidNotToHave() {
        RPCXException given =
                ServerCallErrors.failed(RPCXException.refused(RPCXException.Code.UNAVAILABLE, "of another server"));
        assertThat(given.code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
        assertThat(given).hasMessage("of another server");
        assertThat(given.executed()).isEqualTo(RPCXException.Executed.EXECUTED);
    }

    @Test
    void anExceptionWhoseCauseCannotBeAskedForIsAnAnswerAllTheSame() {
        RPCXException told = ServerCallErrors.failed(new Causeless());
        assertThat(told.code()).isEqualTo(RPCXException.Code.HANDLER_FAILED);
        assertThat(told.executed()).isEqualTo(RPCXException.Executed.EXECUTED);
    }

    @Test
    void anExceptionWhoseMessageCannotBeReadIsAnAnswerAllTheSame() {
        Server server = new Server(0, RegistryServer.registry(new Service())).start();
        try (Client client = Client.standard()) {
            Failing failing = client.create(Failing.class, "127.0.0.1", server.port());
            assertThatThrownBy(() -> failing.fail().get(5, TimeUnit.SECONDS))
                    .hasCauseInstanceOf(RPCXException.class)
                    .hasMessageContaining("the handler failed");
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }
}
