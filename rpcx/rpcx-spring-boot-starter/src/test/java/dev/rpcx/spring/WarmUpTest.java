package dev.rpcx.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.rpcx.Method;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.spring.warm.Warm;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.availability.AvailabilityChangeEvent;
import org.springframework.boot.availability.ReadinessState;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.context.ApplicationEvent;
import org.springframework.context.ApplicationListener;
import org.springframework.context.ConfigurableApplicationContext;

/** Tests that the client is prepared before the application is ready, and what happens if it cannot be. */
@Timeout(120)
class WarmUpTest {
    @RPCXServer("stock")
    static final class Stock {
        private final AtomicInteger handled = new AtomicInteger();

        @Method
        int left() {
            return handled.incrementAndGet();
        }
    }

    @RPCXServer("stock")
    static final class OtherStock {
        @Method
        int remaining() {
            return 1;
        }
    }

    /** Runs the application with a stock service at this port. */
    private static ConfigurableApplicationContext run(
            int port, String warmUp, ApplicationListener<ApplicationEvent> listener) {
        SpringApplication application = new SpringApplication(Warm.class, RPCXAutoConfiguration.class);
        application.setWebApplicationType(WebApplicationType.NONE);
        application.setLogStartupInfo(false);
        application.addListeners(listener);
        return application.run(
                "--spring.main.banner-mode=off",
                "--logging.level.root=warn",
                "--stock.port=" + port,
                "--rpcx.client.warm-up=" + warmUp);
    }

    private static void ignore(ApplicationEvent event) {}

    /** Counts the connections that come, and says nothing to anybody. */
    private static ServerSocket silent(AtomicInteger accepted) throws IOException {
        ServerSocket socket = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        Thread accepting = new Thread(
                () -> {
                    try {
                        while (true) {
                            socket.accept();
                            accepted.incrementAndGet();
                        }
                    } catch (IOException closed) {
                        // the test is over
                    }
                },
                "silent server");
        accepting.setDaemon(true);
        accepting.start();
        return socket;
    }

    @Test
    void theClientConnectsBeforeTheApplicationIsReadyAndIsNotWaitedForForEver() throws Exception {
        AtomicInteger accepted = new AtomicInteger();
        List<Integer> whenReady = Collections.synchronizedList(new ArrayList<>());
        try (ServerSocket socket = silent(accepted);
                ConfigurableApplicationContext context = run(socket.getLocalPort(), "try", event -> {
                    if (event instanceof AvailabilityChangeEvent<?> change
                            && change.getState() == ReadinessState.ACCEPTING_TRAFFIC) {
                        whenReady.add(accepted.get());
                    }
                })) {
            assertThat(context.isRunning()).isTrue();
            assertThat(whenReady)
                    .singleElement()
                    .satisfies(count -> assertThat(count).isPositive());
        }
    }

    @Test
    void anApplicationWhoseServicesAreThereStarts() {
        Stock stock = new Stock();
        try (Server server = new Server(0, RegistryServer.registry(stock)).start();
                ConfigurableApplicationContext context = run(server.port(), "require", WarmUpTest::ignore)) {
            assertThat(stock.handled).as("no handler has run").hasValue(0);
            assertThat(context.getBean(Warm.StockClient.class).left()).isEqualTo(1);
        }
    }

    @Test
    void anApplicationDoesNotStartWithoutAMethodThatItRequires() {
        try (Server server = new Server(0, RegistryServer.registry(new OtherStock())).start()) {
            Throwable failure = catchThrowable(
                    () -> run(server.port(), "require", WarmUpTest::ignore).close());
            assertThat(failure).isNotNull();
            FailureAnalysis analysis = new RPCXStartFailureAnalyzer().analyze(failure);
            assertThat(analysis).isNotNull();
            assertThat(analysis.getDescription()).contains("stock/left is not published", "stock/remaining");
            assertThat(analysis.getAction()).contains("rpcx.client.warm-up=try");
        }
    }

    @Test
    void anApplicationThatOnlyTriesStartsWithoutThatMethod() {
        try (Server server = new Server(0, RegistryServer.registry(new OtherStock())).start();
                ConfigurableApplicationContext context = run(server.port(), "try", WarmUpTest::ignore)) {
            assertThat(context.isRunning()).isTrue();
        }
    }

    @Test
    void aClientThatIsNotPreparedConnectsAtTheFirstCall() throws Exception {
        AtomicInteger accepted = new AtomicInteger();
        try (ServerSocket socket = silent(accepted);
                ConfigurableApplicationContext context = run(socket.getLocalPort(), "off", WarmUpTest::ignore)) {
            assertThat(context.getBeansOfType(RPCXWarmUp.class)).hasSize(1);
            assertThat(accepted).hasValue(0);
        }
    }
}
