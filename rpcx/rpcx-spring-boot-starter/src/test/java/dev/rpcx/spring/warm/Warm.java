package dev.rpcx.spring.warm;

import dev.rpcx.Client;
import dev.rpcx.RPCXClient;
import dev.rpcx.spring.RPCXClientCustomizer;
import java.time.Duration;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.AutoConfigurationPackage;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** An application with a client of another service. To a single address, a client connects only when it has to. */
@Configuration(proxyBeanMethods = false)
@AutoConfigurationPackage
public class Warm {
    @RPCXClient(remoteServerName = "stock")
    public interface StockClient {
        int left();
    }

    @Bean
    StockClient stock(Client client, @Value("${stock.port}") int port) {
        return client.create(StockClient.class, "127.0.0.1", port);
    }

    @Bean
    RPCXClientCustomizer hurried() {
        return builder -> builder.connectTimeout(Duration.ofMillis(300));
    }
}
