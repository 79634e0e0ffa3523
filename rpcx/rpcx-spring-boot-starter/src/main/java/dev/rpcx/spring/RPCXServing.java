package dev.rpcx.spring;

import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.scope.ScopedProxyUtils;
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
    private volatile @Nullable Server server;

    RPCXServing(ListableBeanFactory beans, RPCXProperties properties, List<RPCXServerCustomizer> customizers) {
        this.beans = beans;
        this.properties = properties.server();
        this.customizers = customizers;
    }

    /** @throws RPCXStartException a bean that cannot be published as it is, or a name that is published twice */
    @Override
    public synchronized void start() {
        Map<String, Object> services = new TreeMap<>(beans.getBeansWithAnnotation(RPCXServer.class));
        // whoever wants the service of a scope asks the proxy before it
        services.keySet().removeIf(ScopedProxyUtils::isScopedTarget);
        if (services.isEmpty()) {
            return;
        }
        services.forEach(PublishedBean::check);
        Server.Builder builder = Server.builder(registry(services))
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

    private static RegistryServer registry(Map<String, Object> services) {
        try {
            return RegistryServer.registry(services.values().toArray());
        } catch (IllegalArgumentException e) {
            throw new RPCXStartException(
                    "The @RPCXServer beans cannot be published: " + e.getMessage(),
                    "Beans that are published: " + PublishedBean.listed(services) + ".",
                    e);
        }
    }

    private static void awaitStop(Server started) {
        try {
            started.awaitStop();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Blocks until the calls under way have ended, or the time for them. */
    @Override
    public void stop() {
        Server stopping;
        synchronized (this) {
            stopping = server;
            server = null;
        }
        // whoever asks how the server is meanwhile does not wait
        if (stopping != null) {
            stopping.stop(properties.stop());
        }
    }

    @Override
    public boolean isRunning() {
        return server != null;
    }

    /** Where it listens; empty where nothing is published, or before the start and after the end. */
    public OptionalInt port() {
        Server running = server;
        return running == null ? OptionalInt.empty() : OptionalInt.of(running.port());
    }

    /** What it publishes, as {@code service/method}. */
    public List<String> services() {
        Server running = server;
        return running == null ? List.of() : running.services();
    }
}
