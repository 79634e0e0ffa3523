package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.RunOn;
import dev.rpcx.Server;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that a thread that serves several calls has inherited nothing from the thread that first needed it. */
@Timeout(60)
class InheritedValuesTest {
    /** A value that says who the caller is, as a security library has it. */
    private static final InheritableThreadLocal<String> WHO = new InheritableThreadLocal<>();

    private static String who() {
        String who = WHO.get();
        return who == null ? "nobody" : who;
    }

    @RPCXServer("who")
    static final class Service {
        volatile @Nullable ClassLoader loader;
        final CompletableFuture<String> later = new CompletableFuture<>();

        @Method
        String virtual() {
            loader = Thread.currentThread().getContextClassLoader();
            return who();
        }

        @Method
        @RunOn(RunOn.Place.POOL)
        String pooled() {
            return virtual();
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String here() {
            return virtual();
        }

        @Method
        CompletableFuture<String> later() {
            return later;
        }
    }

    @RPCXClient(remoteServerName = "who")
    interface Calls {
        String virtual();

        String pooled();

        String here();

        CompletableFuture<String> later();
    }

    private final Service service = new Service();
    private final ClassLoader before = Thread.currentThread().getContextClassLoader();
    private final ClassLoader ofTheApplication = new URLClassLoader(new URL[0], before);

    @BeforeEach
    void someoneIsServed() {
        WHO.set("alice");
    }

    @AfterEach
    void nobodyIsServed() {
        WHO.remove();
        Thread.currentThread().setContextClassLoader(before);
    }

    @Test
    void noThreadHasTheValuesOfTheOneThatNeededIt() throws Exception {
        Thread.currentThread().setContextClassLoader(ofTheApplication);
        try (Server server = Server.builder(RegistryServer.registry(service))
                        .host("127.0.0.1")
                        .build()
                        .start();
                Client client = Client.builder().eventLoops(1).build()) {
            Thread.currentThread().setContextClassLoader(before);
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            assertThat(calls.virtual()).isEqualTo("nobody");
            assertThat(service.loader).isSameAs(ofTheApplication);
            assertThat(calls.pooled()).isEqualTo("nobody");
            assertThat(service.loader).isSameAs(ofTheApplication);
            assertThat(calls.here()).isEqualTo("nobody");
            assertThat(service.loader).isSameAs(Server.class.getClassLoader());
            CompletableFuture<String> seen = calls.later()
                    .thenApply(any -> Thread.currentThread() instanceof LoopThread ? who() : "not on an event loop");
            service.later.complete("");
            assertThat(seen.get(10, TimeUnit.SECONDS)).isEqualTo("nobody");
        }
    }

    /** The first thread that asks for a timer in a process has the JDK start a thread, which inherits its values. */
    @Test
    void nothingIsTimedByTheJdk() {
        Set<String> timed = Set.of("completeOnTimeout", "orTimeout", "delayedExecutor");
        assertThat(new ClassFileImporter()
                                .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
                                .importPackagesOf(Client.class)
                                .stream()
                                .flatMap(each -> each.getMethodCallsFromSelf().stream())
                                .filter(call -> call.getTargetOwner().isAssignableTo(CompletableFuture.class)
                                        && timed.contains(call.getName())))
                .isEmpty();
    }

    @Test
    void whoNeedsAThreadOfALoopStaysInterrupted() {
        Thread.currentThread().interrupt();
        LoopThread made = ThreadFactories.loop(() -> {}, "of a test");
        assertThat(Thread.interrupted()).isTrue();
        assertThat(made.isDaemon()).isTrue();
        assertThat(made.getPriority()).isEqualTo(Thread.NORM_PRIORITY);
    }
}
