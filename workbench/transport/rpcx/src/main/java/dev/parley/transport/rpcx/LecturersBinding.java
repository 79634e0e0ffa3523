package dev.parley.transport.rpcx;

import static dev.parley.transport.rpcx.Binding.call;

import dev.parley.spi.Handler;
import dev.parley.spi.lecturers.Checked;
import dev.parley.spi.lecturers.Credentials;
import dev.parley.spi.lecturers.Lecturers;
import dev.parley.spi.lecturers.NameAsked;
import dev.parley.spi.lecturers.NestedProfiles;
import dev.parley.spi.lecturers.Page;
import dev.parley.spi.lecturers.Profile;
import dev.parley.spi.lecturers.ProfileAsked;
import dev.parley.spi.lecturers.Profiles;
import dev.parley.spi.lecturers.Token;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** The contract {@code lecturers}. */
final class LecturersBinding {
    static final Binding<Client> BINDING = Binding.of(
            Lecturers.CONTRACT,
            Client.class,
            Service::new,
            List.of(
                    call(Lecturers.AUTHENTICATE, Client::authenticate, Client::sendAuthenticate),
                    call(Lecturers.CHECK, Client::check, Client::sendCheck),
                    call(Lecturers.FLAT, Client::flat, Client::sendFlat),
                    call(Lecturers.NESTED, Client::nested, Client::sendNested),
                    call(Lecturers.PROFILE, Client::profile, Client::sendProfile),
                    call(Lecturers.NAMED, Client::named, Client::sendNamed)));

    private LecturersBinding() {}

    /** As a caller sees it, blocking and not. */
    @RPCXClient(remoteServerName = "lecturers")
    interface Client {
        @Method
        Token authenticate(Credentials request);

        @Method
        Checked check(Token request);

        @Method
        Profiles flat(Page request);

        @Method
        NestedProfiles nested(Page request);

        @Method
        Profile profile(ProfileAsked request);

        @Method
        Profiles named(NameAsked request);

        @Method("authenticate")
        CompletableFuture<Token> sendAuthenticate(Credentials request);

        @Method("check")
        CompletableFuture<Checked> sendCheck(Token request);

        @Method("flat")
        CompletableFuture<Profiles> sendFlat(Page request);

        @Method("nested")
        CompletableFuture<NestedProfiles> sendNested(Page request);

        @Method("profile")
        CompletableFuture<Profile> sendProfile(ProfileAsked request);

        @Method("named")
        CompletableFuture<Profiles> sendNamed(NameAsked request);
    }

    /** As it is served. */
    @RPCXServer("lecturers")
    static final class Service {
        private final Handler handler;

        Service(Handler handler) {
            this.handler = handler;
        }

        @Method
        Token authenticate(Credentials request) {
            return Binding.answer(handler, Lecturers.AUTHENTICATE, request);
        }

        @Method
        Checked check(Token request) {
            return Binding.answer(handler, Lecturers.CHECK, request);
        }

        @Method
        Profiles flat(Page request) {
            return Binding.answer(handler, Lecturers.FLAT, request);
        }

        @Method
        NestedProfiles nested(Page request) {
            return Binding.answer(handler, Lecturers.NESTED, request);
        }

        @Method
        Profile profile(ProfileAsked request) {
            return Binding.answer(handler, Lecturers.PROFILE, request);
        }

        @Method
        Profiles named(NameAsked request) {
            return Binding.answer(handler, Lecturers.NAMED, request);
        }
    }
}
