          local ds, dn = es + ks, en + kn
          if dn >= G then ds, dn = ds + 1, dn - G end
          due[k] = ds * 1000 + (dn + 999999 - (dn + 999999) % 1000000) / 1000000 + 1 + later * 1000
