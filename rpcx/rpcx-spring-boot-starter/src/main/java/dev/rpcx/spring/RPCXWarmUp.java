package dev.rpcx.spring;

import dev.rpcx.Client;
import dev.rpcx.RPCXException;
import org.springframework.boot.ApplicationArguments;
import org.springframework.boot.ApplicationRunner;
import org.springframework.core.Ordered;

/**
 * Prepares the client before the application is ready: Spring Boot runs its runners, this one first, before it says
 * that the application accepts traffic.
 */
final class RPCXWarmUp implements ApplicationRunner, Ordered {
    private final Client client;
    private final RPCXProperties.WarmUp how;

    RPCXWarmUp(Client client, RPCXProperties.WarmUp how) {
        this.client = client;
        this.how = how;
    }

    /** @throws RPCXStartException if calls would fail, and the application must not start then */
    @Override
    public void run(ApplicationArguments args) {
        if (how == RPCXProperties.WarmUp.OFF) {
            return;
        }
        try {
            client.warmUp();
        } catch (RPCXException e) {
            if (how == RPCXProperties.WarmUp.REQUIRE) {
                throw new RPCXStartException(
                        "Calls of this application would fail: " + e.getMessage(),
                        "Start or correct what is named, or let the application start without it:"
                                + " rpcx.client.warm-up=try.",
                        e);
            }
            System.getLogger("dev.rpcx.spring")
                    .log(
                            System.Logger.Level.WARNING,
                            "calls of this application would fail: " + e.getMessage()
                                    + " (expected: what is called; rpcx.client.warm-up=off does not look)");
        }
    }

    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }
}
