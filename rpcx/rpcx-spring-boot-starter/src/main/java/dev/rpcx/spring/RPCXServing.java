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
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.context.SmartLifecycle;

/**
 * Server of the application: it listens once all beans have been made, and stops before the first of them is destroyed.
 * An application without {@code @RPCXServer} beans has no server.
 */
public final class RPCXServing implements SmartLifecycle, DisposableBean {
    private final ListableBeanFactory beans;
    private final RPCXProperties.Server properties;
    private final List<RPCXServerCustomizer> customizers;

    /**
     * The server that listens; null before the start, and once a stop has begun. Written while holding the lock of this
     * object, and read by any thread.
     */
    private volatile @Nullable Server server;

    RPCXServing(ListableBeanFactory beans, RPCXProperties properties, List<RPCXServerCustomizer> customizers) {
        this.beans = beans;
        this.properties = properties.server();
        this.customizers = customizers;
    }

    /**
     * Starts the server, unless there is no service to publish. Logs the port and the published methods.
     *
     * @throws RPCXStartException if a bean cannot be published as it is, if a name is published twice, or if Netty is
     *     too old
     */
    @Override
    public synchronized void start() {
        Map<String, Object> services = new TreeMap<>(beans.getBeansWithAnnotation(RPCXServer.class));
        // a service that belongs to a scope is called through the proxy in front of it, so the bean behind the proxy is
        // not published itself
        services.keySet().removeIf(ScopedProxyUtils::isScopedTarget);
        if (services.isEmpty()) {
            return;
        }
        services.forEach(PublishedBean::check);
        RegistryServer registry = registry(services);
        Server.Builder builder = RPCXStartException.checkingNetty(() -> Server.builder(registry))
                .host(properties.host())
                .port(properties.port())
                .maxRunning(properties.maxRunning());
        customizers.forEach(customizer -> customizer.customize(builder));
        Server started = builder.build().start();
        server = started;
        // the server's own threads do not keep the process alive, but an application that serves has to stay alive
        Thread waiting = new Thread(() -> awaitStop(started), "rpcx-serving");
        waiting.setDaemon(false);
        waiting.start();
        System.getLogger("dev.rpcx.spring")
                .log(
                        System.Logger.Level.INFO,
                        "RPCX listens on port " + started.port() + ": " + String.join(", ", started.services()));
    }

    private static RegistryServer registry(Map<String, Object> services) {
        try {
            return RegistryServer.registry(services.values().toArray());
        } catch (IllegalArgumentException e) {
            throw new RPCXStartException(
                    "The @RPCXServer beans cannot be published: " + e.getMessage(),
                    "Beans that are published: " + PublishedBean.namesOf(services) + ".",
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

    /** Stops the server. Blocks until the calls under way have ended, or until the time for them is over. */
    @Override
    public void stop() {
        Server stopping;
        synchronized (this) {
            stopping = server;
            server = null;
        }
        // The field has been cleared before, so that a thread that asks for the state of the server meanwhile reads
        // that it has stopped. Tested by {@code StarterTest.howTheServerIsCanBeAskedWhileItStops}. The lock is not held
        // here, so that another thread that calls start() or stop() does not wait for the calls under way.
        if (stopping != null) {
            stopping.stop(properties.stop());
        }
    }

    /**
     * Stops the server of an application that could not start. Spring 6 destroys its beans then, and does not stop what
     * has been started.
     */
    @Override
    public void destroy() {
        stop();
    }

    @Override
    public boolean isRunning() {
        return server != null;
    }

    /**
     * Returns the port on which the server listens; empty if nothing is published, before the start, and once a stop
     * has begun.
     */
    public OptionalInt port() {
        Server running = server;
        return running == null ? OptionalInt.empty() : OptionalInt.of(running.port());
    }

    /** Returns the published methods, as {@code service/method}; none if the server is not running. */
    public List<String> services() {
        Server running = server;
        return running == null ? List.of() : running.services();
    }
}
