package dev.rpcx.spring.made;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import org.springframework.boot.autoconfigure.AutoConfigurationPackage;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** An application whose methods make its services and clients. */
@Configuration(proxyBeanMethods = false)
@AutoConfigurationPackage
public class Made {
    @RPCXServer("greeter")
    public static class Greeter {
        private final String how;

        public Greeter() {
            this("by the scan");
        }

        public Greeter(String how) {
            this.how = how;
        }

        @Method
        public String how() {
            return how;
        }
    }

    /** Serves the same service, as another class than the annotated one. */
    public static class Loud extends Greeter {
        public Loud() {
            super("by a method");
        }
    }

    @RPCXServer("found")
    public static class Found {
        @Method
        public int number() {
            return 1;
        }
    }

    @RPCXClient(remoteServerName = "greeter", remoteServerAddress = "127.0.0.1", remoteServerDomain = 9)
    public interface GreeterClient {
        String how();
    }

    @RPCXClient(remoteServerName = "found", remoteServerAddress = "127.0.0.1", remoteServerDomain = 9)
    public interface FoundClient {
        int number();
    }

    @Bean
    Loud greeter() {
        return new Loud();
    }

    @Bean
    GreeterClient own(Client client) {
        return client.create(GreeterClient.class, "10.0.0.1", 10);
    }
}
