package dev.rpcx.spring;

import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.util.Collection;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.context.SmartLifecycle;

/**
 * The application's server: listens once all beans are there, stops before the first of them ends. Without {@code @RPCXServer} beans there is
 * none.
 */
public final class RPCXServing implements SmartLifecycle {
    private final ListableBeanFactory beans;
    private final RPCXProperties.Server properties;
    private final List<RPCXServerCustomizer> customizers;
    private @Nullable Server server;

    RPCXServing(ListableBeanFactory beans, RPCXProperties properties, List<RPCXServerCustomizer> customizers) {
        this.beans = beans;
        this.properties = properties.server();
        this.customizers = customizers;
    }

    @Override
    public synchronized void start() {
        Collection<Object> services =
                beans.getBeansWithAnnotation(RPCXServer.class).values();
        if (services.isEmpty()) {
            return;
        }
        Server.Builder builder = Server.builder(RegistryServer.registry(services.toArray()))
                .host(properties.host())
                .port(properties.port())
                .maxRunning(properties.maxRunning());
        customizers.forEach(customizer -> customizer.customize(builder));
        Server started = builder.build().start();
        server = started;
        // the server's own threads do not keep a process alive, and an application that serves has to live
        Thread waiting = new Thread(() -> awaitStop(started), "rpcx-serving");
        waiting.setDaemon(false);
        waiting.start();
    }

    private static void awaitStop(Server started) {
        try {
            started.awaitStop();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public synchronized void stop() {
        if (server != null) {
            server.stop(properties.stop());
            server = null;
        }
    }

    @Override
    public synchronized boolean isRunning() {
        return server != null;
    }

    /** Where it listens; empty where nothing is published, or before the start and after the end. */
    public synchronized java.util.OptionalInt port() {
        return server == null ? java.util.OptionalInt.empty() : java.util.OptionalInt.of(server.port());
    }

    /** What it publishes, as {@code service/method}. */
    public synchronized List<String> services() {
        return server == null ? List.of() : server.services();
    }
}
