package dev.rpcx.spring.conditional;

import dev.rpcx.RPCXClient;
import org.springframework.boot.autoconfigure.AutoConfigurationPackage;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Profile;

/** An application some of whose clients are there under conditions. */
@Configuration(proxyBeanMethods = false)
@AutoConfigurationPackage
public class Conditional {
    @RPCXClient(remoteServerName = "always")
    interface AlwaysClient {
        int number();
    }

    @Profile("cloud")
    @RPCXClient(remoteServerName = "cloud")
    interface CloudClient {
        int number();
    }

    @ConditionalOnProperty("conditional")
    @RPCXClient(remoteServerName = "conditional")
    interface ConditionalClient {
        int number();
    }
}
