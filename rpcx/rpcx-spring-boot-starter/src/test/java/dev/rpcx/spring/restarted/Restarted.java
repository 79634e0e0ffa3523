package dev.rpcx.spring.restarted;

import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.spring.RPCXDiscovery;
import dev.rpcx.spring.RPCXServing;
import java.util.function.Supplier;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfigurationPackage;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** An application that calls itself, and is loaded anew by each restart. */
@Configuration(proxyBeanMethods = false)
@AutoConfigurationPackage
public class Restarted {
    @RPCXServer("self")
    public static class Self {
        @Method
        public Text text() {
            return new Text("called");
        }
    }

    public record Text(String text) {}

    @RPCXClient(remoteServerName = "self")
    public interface SelfClient {
        Text text();
    }

    @Bean
    RPCXDiscovery here(ObjectProvider<RPCXServing> serving) {
        return service -> Endpoints.of(
                new Endpoint("127.0.0.1", serving.getObject().port().orElseThrow()));
    }

    @Bean
    Supplier<String> call(ObjectProvider<SelfClient> client) {
        return () -> client.getObject().text().text();
    }
}
